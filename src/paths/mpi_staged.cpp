// Path `mpi:staged`: packed messages between GPUs that cannot reach each other (or anywhere, if forced), by MPI through
// pinned host memory, into which the GPU packs and from which it unpacks. MPI never sees a pointer to GPU memory.
//
//   GPU:     pack    store a word a message, wait for another    unpack
//   worker:                        start ... test ... store
//
// The GPU says itself what it wants, so that a captured graph can be replayed and no call from the stream to the host
// is needed, which would take longer than a small message. Large links go in slices: one is packed while another
// travels and a third is unpacked.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "engines/gpu/program.hpp"
#include "paths/mpi_message.hpp"
#include "paths/shapes.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/mpi.hpp"
#include "session/worker.hpp"

namespace tasuki {
namespace {

constexpr const char* kName = "mpi:staged";
constexpr std::int64_t kSlice = 1 << 20;  // bytes that are worth a message of their own
constexpr std::int64_t kSlices = 16;      // about so many are enough to keep all busy

// The messages of one operation, driven by the worker.
class Batch final : public Worker::Task {
 public:
  explicit Batch(const ChannelRequest& r) : abort_(r.runtime.gpus->abort_word()), rank_(r.plan.rank) {
    operation_ = r.plan.operation;
    most_ =
        static_cast<std::size_t>(std::count_if(r.plan.commands.begin(), r.plan.commands.end(), [&](const Command& c) {
          return (c.verb == Verb::send || c.verb == Verb::recv) && c.path == r.command.path;
        }));
    const auto bytes = static_cast<std::int64_t>(2 * sizeof(std::uint64_t) * most_);
    words_ = {gpu()->allocate_mapped(bytes), [](std::byte* p) { gpu()->release_mapped(p); }};
    Worker::instance().add(this);
  }

  ~Batch() override {
    Worker::instance().remove(this);
    if (!mpi_running()) return;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (messages_[i].active) mpi::calls().Cancel(&requests_[i]);  // only after a failure
      mpi::calls().Request_free(&requests_[i]);
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // All messages are added before the first is asked for.
  std::size_t add(const ChannelRequest& r) {
    const auto command = static_cast<std::int64_t>(&r.command - r.plan.commands.data());
    const std::lock_guard lock(adding_);
    requests_.push_back(make_message(r, r.local[0] + r.command.offset));
    Message m{command, r.command.peer, r.command.tag, r.command.verb == Verb::send, false, -1, 0};
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& other = messages_[i];
      if (other.peer == m.peer && other.tag == m.tag && other.sends == m.sends) m.behind = static_cast<int>(i);
    }
    messages_.push_back(m);
    return requests_.size() - 1;
  }

  std::uint64_t* ended(std::size_t message) const { return word(message); }
  std::uint64_t* asked(std::size_t message) const { return word(most_ + message); }

  // What MPI has said about this message, if it has failed.
  std::string failure(std::size_t message) const {
    return broken_.load(std::memory_order_acquire) && message == failed_ ? failure_ : std::string();
  }

  bool serve() override {
    // Once the GPU has been told to give up, nobody waits for messages any more.
    if (std::atomic_ref<std::uint32_t>(*abort_).load(std::memory_order_relaxed) != 0) return false;
    const std::lock_guard lock(adding_);
    // Receives first, so that nothing arrives unexpected that need not.
    for (const bool sends : {false, true}) {
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        if (messages_[i].sends == sends && !messages_[i].active && wanted(i) && !begin(i)) return false;
      }
    }
    // One by one: where several are tested together, not every MPI leaves errors to the communicator's handler.
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
    int behind = -1;           // the message before it with this tag, which MPI tells apart by their order alone
    std::uint64_t epochs = 0;  // that have ended
    std::uint64_t started() const { return epochs + (active ? 1 : 0); }
  };

  std::uint64_t* word(std::size_t at) const { return reinterpret_cast<std::uint64_t*>(words_.get()) + at; }

  // Whether the staging has been packed, or what had arrived there before has been unpacked. The GPU asks in order too,
  // but a word may have been looked at before it did so and the next one afterwards.
  bool wanted(std::size_t message) const {
    const Message& m = messages_[message];
    const bool turn = m.behind < 0 || messages_[static_cast<std::size_t>(m.behind)].started() > m.epochs;
    const std::atomic_ref<std::uint64_t> seen(*asked(message));
    return turn && seen.load(std::memory_order_acquire) > m.epochs * kSignal;
  }

  bool begin(std::size_t message) {
    const int code = mpi::calls().Start(&requests_[message]);
    if (code != MPI_SUCCESS) return fail(message, "MPI_Start", code);
    return messages_[message].active = true;
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

  // Ends the kernels that wait; the engine then asks why.
  bool fail(std::size_t message, const char* call, int code) {
    const Message& m = messages_[message];
    failed_ = message;
    failure_ = fmt::format("rank {}: {}: epoch {} did not end: #{} {} with rank {}: {} failed: {}", rank_, operation_,
                           m.epochs + 1, m.command, m.sends ? "send" : "recv", m.peer, call, mpi_error_text(code));
    broken_.store(true, std::memory_order_release);
    std::atomic_ref<std::uint32_t>(*abort_).store(1);
    return false;
  }

  std::uint32_t* abort_;
  int rank_;
  std::string operation_;
  std::size_t most_ = 0;              // messages
  std::shared_ptr<std::byte> words_;  // per message one that the GPU reads, then one that it writes; in host memory
  std::mutex adding_;
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;
  std::size_t failed_ = 0;  // and its text: written before `broken_`
  std::string failure_;
  std::atomic<bool> broken_{false};
};

class StagedMessage final : public Channel {
 public:
  StagedMessage(std::shared_ptr<Batch> batch, const ChannelRequest& r)
      : batch_(std::move(batch)), message_(batch_->add(r)) {}

  const std::uint64_t* ended() const override { return batch_->ended(message_); }
  std::uint64_t* asked() const override { return batch_->asked(message_); }
  std::string failure() const override { return batch_->failure(message_); }

 private:
  std::shared_ptr<Batch> batch_;
  std::size_t message_;
};

class MpiStaged final : public MessagePath {
 public:
  MpiStaged(Runtime& runtime, const Profile& profile)
      : MessagePath(Home::pinned), runtime_(runtime), profile_(profile) {}
  std::string name() const override { return kName; }
  Memory memory() const override { return Memory::device; }
  std::string resource() const override { return "MPI through the host"; }
  bool latencies_overlap() const override { return true; }
  bool joins(const Topology&, int a, int b) const override { return a != b && usable_; }
  std::int64_t slice_of(std::int64_t bytes) const override {
    return std::min(kMostOfMpi, std::max(kSlice, (bytes + kSlices - 1) / kSlices));
  }

  // Measured, and so on offer, only where GPUs do not reach each other or where it is asked for.
  void prepare(Runtime& runtime, const std::string& wanted) override {
    forced_ = PathSet::forces(wanted, *this);
    if (prepared_ || (runtime.gpus->complete() && !forced_)) return;
    prepared_ = true;
    const bool enough = runtime.thread_level() >= MPI_THREAD_MULTIPLE;
    usable_ = and_over_ranks(runtime, {enough ? std::uint64_t{1} : 0}, "looking for MPI's threads")[0] != 0;
    why_not_ = "the progress thread needs MPI_THREAD_MULTIPLE, but MPI was started with less; use MPI_Init_thread";
  }

  Offer offer(const Move& move, const Place&, const Place&) const override {
    if (move.src_rank == move.dst_rank) return Offer::no("same rank");
    if (!usable_) return Offer::no(why_not_);
    if (!forced_ && runtime_.gpus->reach(move.src_rank, move.dst_rank)) return Offer::no("the GPUs reach each other");
    return priced(profile_, name(), move);
  }

  // An operation's channels are opened one after the other.
  std::unique_ptr<Channel> open(const ChannelRequest& request) const override {
    auto batch = batch_.lock();
    if (!batch || operation_ != request.operation) {
      batch = std::make_shared<Batch>(request);
      batch_ = batch;
      operation_ = request.operation;
    }
    return std::make_unique<StagedMessage>(std::move(batch), request);
  }

 private:
  const Runtime& runtime_;
  const Profile& profile_;
  bool forced_ = false;
  bool prepared_ = false;
  bool usable_ = false;
  std::string why_not_ = "all GPUs reach each other (path 'mpi' goes through the host all the same)";
  mutable std::weak_ptr<Batch> batch_;  // of the operation that is being made
  mutable int operation_ = 0;
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<MpiStaged>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
