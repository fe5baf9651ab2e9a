// Transport `mpi staged`: messages between GPUs through pinned host memory. The GPU packs into it and unpacks from it.
// MPI never gets a pointer to GPU memory.
//
//   GPU:     pack    set a word for each message, wait for another    unpack
//   worker:                        start ... test ... store
//
// The GPU makes requests through words in host memory. So a captured graph can be replayed, and no host function is
// called from the stream, which would take longer than a small message. Large links are cut into slices: one is packed
// while another travels and a third is unpacked.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "paths/path.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/mpi.hpp"
#include "session/worker.hpp"
#include "support/fail_point.hpp"
#include "transports/mpi_message.hpp"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

// The messages of one operation; the progress thread (`Worker`) drives them.
class Batch final : public Worker::Task {
 public:
  explicit Batch(const ChannelRequest& r)
      : runtime_(r.runtime),
        abort_(r.runtime.gpus->abort_word()),
        rank_(r.plan.rank),
        operation_(r.plan.operation),
        most_(r.commands.size()),
        begun_(most_) {
    const auto bytes = static_cast<std::int64_t>(2 * sizeof(std::uint64_t) * most_);
    words_ = {gpu()->allocate_mapped(bytes), [](std::byte* p) { gpu()->release_mapped(p); }};
    for (const CarriedCommand& carried : r.commands) add(r, carried);
    FailPoint::pass("registering messages with the progress thread");
    Worker::instance().add(this);
  }

  ~Batch() override {
    Worker::instance().remove(this);
    for (const Message& m : messages_)
      runtime_.count_messages(m.sends ? static_cast<std::int64_t>(m.started()) : -static_cast<std::int64_t>(m.epochs));
    if (!mpi_running()) return;
    for (std::size_t i = 0; i < messages_.size(); ++i)
      if (messages_[i].active) mpi::calls().Cancel(&requests_[i]);  // only after a failure
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  std::uint64_t* ended(std::size_t message) const { return word(message); }
  std::uint64_t* asked(std::size_t message) const { return word(most_ + message); }

  // Where it stands. The thread may go on meanwhile.
  std::string standing(std::size_t message) const {
    const auto epoch = [](std::uint64_t* at) {
      return std::atomic_ref<std::uint64_t>(*at).load(std::memory_order_acquire) / kSignal;
    };
    return fmt::format(
        "the GPU has asked for epoch {} of the message, MPI has been given {} and has ended {}; {}",
        epoch(asked(message)), begun_[message].load(), epoch(ended(message)),
        Worker::instance().goes_on() ? "the progress thread goes on" : "the progress thread stands still");
  }

  // MPI's error about this message; empty if it has not failed.
  std::string failure(std::size_t message) const {
    return broken_.load(std::memory_order_acquire) && message == failed_ ? failure_ : std::string();
  }

  bool serve() override {
    if (runtime_.over()) return false;
    // After the GPU has been told to give up, no message is needed any more.
    if (std::atomic_ref<std::uint32_t>(*abort_).load(std::memory_order_relaxed) != 0) return false;
    // Receives are started first, so that fewer messages arrive before their receive.
    for (const bool sends : {false, true}) {
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        if (messages_[i].sends == sends && !messages_[i].active && wanted(i) && !begin(i)) return false;
      }
    }
    // Tested one by one: with MPI_Testall some MPIs do not use the communicator's error handler.
    bool busy = false;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!messages_[i].active) continue;
      busy = true;
      if (!look(i)) return false;
    }
    return busy;
  }

  bool asked() const override { return false; }
  bool asked_silently() const override { return true; }

 private:
  struct Message {
    std::int64_t command = 0;
    int peer = 0;
    int tag = 0;
    bool sends = false;
    bool active = false;
    int behind = -1;           // the message before it with the same tag; MPI matches those by order
    std::uint64_t epochs = 0;  // epochs of this message that have ended
    std::uint64_t started() const { return epochs + (active ? 1 : 0); }
  };

  void add(const ChannelRequest& r, const CarriedCommand& carried) {
    const Command& c = r.command(carried);
    requests_.add(r, c, carried.local[0] + c.offset);
    Message m{carried.command, c.peer, c.tag, c.verb == Verb::send, false, -1, 0};
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& other = messages_[i];
      if (other.peer == m.peer && other.tag == m.tag && other.sends == m.sends) m.behind = static_cast<int>(i);
    }
    messages_.push_back(m);
  }

  std::uint64_t* word(std::size_t at) const { return reinterpret_cast<std::uint64_t*>(words_.get()) + at; }

  // Whether the GPU has packed this staging buffer, or has unpacked what arrived in it before. The message before it
  // with the same tag must be started first. The GPU sets the words in that order, but this thread may have read that
  // one too early and this one later.
  bool wanted(std::size_t message) const {
    const Message& m = messages_[message];
    const bool turn = m.behind < 0 || messages_[static_cast<std::size_t>(m.behind)].started() > m.epochs;
    const std::atomic_ref<std::uint64_t> seen(*asked(message));
    return turn && seen.load(std::memory_order_acquire) > m.epochs * kSignal;
  }

  bool begin(std::size_t message) {
    const int code = mpi::calls().Start(&requests_[message]);
    if (code != MPI_SUCCESS) return fail(message, "MPI_Start", code);
    messages_[message].active = true;
    begun_[message].store(messages_[message].started());
    return true;
  }

  bool look(std::size_t message) {
    Message& m = messages_[message];
    int ended = 0;
    const int code = mpi::calls().Test(&requests_[message], &ended, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && ended == 0) return true;
    m.active = false;
    if (code != MPI_SUCCESS) return fail(message, "MPI_Test", code);
    ++m.epochs;
    std::atomic_ref<std::uint64_t>(*this->ended(message)).store(m.epochs * kSignal, std::memory_order_release);
    return true;
  }

  // Ends the kernels that wait; the engine then asks for the failure.
  bool fail(std::size_t message, const char* call, int code) {
    const Message& m = messages_[message];
    failed_ = message;
    failure_ = fmt::format("rank {}: {}: epoch {} did not end: #{} {} with rank {}: {} failed: {}", rank_, operation_,
                           m.epochs + 1, m.command, m.sends ? "send" : "recv", m.peer, call, mpi_error_text(code));
    broken_.store(true, std::memory_order_release);
    std::atomic_ref<std::uint32_t>(*abort_).store(1);
    return false;
  }

  Runtime& runtime_;
  std::uint32_t* abort_;
  int rank_;
  std::string operation_;
  std::size_t most_ = 0;              // messages
  std::shared_ptr<std::byte> words_;  // two a message, in host memory: one that the GPU reads, one that it writes
  Requests requests_;
  std::vector<Message> messages_;
  std::vector<std::atomic<std::uint64_t>> begun_;  // epochs of each message that MPI has been given, for `standing`
  std::size_t failed_ = 0;                         // the message that failed; written, with its text, before `broken_`
  std::string failure_;
  std::atomic<bool> broken_{false};
};

class StagedMessage final : public ThreadChannel {
 public:
  StagedMessage(std::shared_ptr<Batch> batch, std::size_t message) : batch_(std::move(batch)), message_(message) {}

  const std::uint64_t* ended() const override { return batch_->ended(message_); }
  std::uint64_t* asked() const override { return batch_->asked(message_); }
  std::string failure() const override { return batch_->failure(message_); }
  std::string standing() const override { return batch_->standing(message_); }

 private:
  std::shared_ptr<Batch> batch_;
  std::size_t message_;
};

class MpiStaged final : public Transport {
 public:
  // Finds out whether all ranks may call MPI from the progress thread. Collective.
  explicit MpiStaged(Runtime& runtime) {
    const bool enough = runtime.thread_level() >= MPI_THREAD_MULTIPLE;
    threads_ = and_over_ranks(runtime, {enough ? std::uint64_t{1} : 0}, "looking for MPI's threads")[0] != 0;
  }
  // Measuring the path takes time that all programs would pay. So it is offered only if some GPUs need it or the user
  // names it.
  void prepare(Runtime& runtime, const std::string& wanted) override {
    if (!runtime.gpus || (runtime.gpus->complete() && !names(wanted, path_named("mpi:staged")))) return;
    wanted_ = true;
  }
  bool prepare_pair(Runtime& runtime, int peer, const std::string& wanted) override {
    return threads_ && (names(wanted, path_named("mpi:staged")) || !runtime.gpus->reach(runtime.rank(), peer));
  }
  std::string why_not() const override {
    if (!wanted_) return "not measured: no GPU needs it (option 'path' with 'mpi' in its list has it measured)";
    return threads_ ? ""
                    : "the progress thread needs MPI_THREAD_MULTIPLE, but MPI was started with less; use "
                      "MPI_Init_thread";
  }

  std::vector<Channel> open(const ChannelRequest& r) override {
    const auto batch = std::make_shared<Batch>(r);
    std::vector<Channel> channels;
    for (std::size_t i = 0; i < r.commands.size(); ++i)
      channels.push_back({nullptr, nullptr, std::make_unique<StagedMessage>(batch, i)});
    return channels;
  }

 private:
  bool threads_ = false;
  bool wanted_ = false;
};

const TransportRegistration registration{
    "mpi staged", [](Runtime& runtime) -> std::unique_ptr<Transport> { return std::make_unique<MpiStaged>(runtime); }};

}  // namespace
}  // namespace tasuki
