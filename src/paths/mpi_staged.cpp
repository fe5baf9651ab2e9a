// Path `mpi:staged`: packed messages between GPUs that cannot reach each other (or anywhere, if forced), by MPI through
// pinned host memory, into which the GPU packs and from which it unpacks. MPI never sees a pointer to GPU memory.
//
//   stream:  pack   ask the worker    wait for all messages' words    unpack
//   worker:                       start ... test ... store a word a message
//
// Epochs are counted where they are asked for, so that a captured graph can be replayed.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "engines/gpu_program.hpp"
#include "engines/worker.hpp"
#include "paths/mpi_message.hpp"
#include "paths/shapes.hpp"
#include "support/mpi.hpp"
#include "topology/collective.hpp"
#include "topology/gpu_memory.hpp"

namespace tasuki {
namespace {

constexpr const char* kName = "mpi:staged";

// The messages of one operation: asked for together by the stream, driven by the worker.
class Batch final : public Worker::Task {
 public:
  explicit Batch(const ChannelRequest& r) : abort_(r.runtime.gpus->abort_word()), rank_(r.plan.rank) {
    operation_ = r.plan.operation;
    const auto count = std::count_if(r.plan.commands.begin(), r.plan.commands.end(), [&](const Command& c) {
      return (c.verb == Verb::send || c.verb == Verb::recv) && c.path == r.command.path;
    });
    const auto bytes = static_cast<std::int64_t>(sizeof(std::uint64_t)) * count;
    words_ = {gpu()->allocate_mapped(bytes), [](std::byte* p) { gpu()->release_mapped(p); }};
    Worker::instance().add(this);
  }

  ~Batch() override {
    Worker::instance().remove(this);
    if (!mpi_running()) return;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (messages_[i].active) MPI_Cancel(&requests_[i]);  // only after a failure
      MPI_Request_free(&requests_[i]);
    }
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // All messages are added before the first is asked for.
  std::size_t add(const ChannelRequest& r) {
    const auto command = static_cast<std::int64_t>(&r.command - r.plan.commands.data());
    requests_.push_back(make_message(r, r.local[0] + r.command.offset));
    messages_.push_back({command, r.command.peer, r.command.verb == Verb::send, false});
    return requests_.size() - 1;
  }

  void enqueue(Stream stream) {
    gpu()->call(
        stream, [](void* batch) { static_cast<Batch*>(batch)->ask(); }, this);
  }

  std::uint64_t* word(std::size_t message) const { return reinterpret_cast<std::uint64_t*>(words_.get()) + message; }

  // What MPI has said about this message, if it has failed.
  std::string failure(std::size_t message) const {
    return broken_.load(std::memory_order_acquire) && message == failed_ ? failure_ : std::string();
  }

  bool serve() override {
    if (!asked()) return false;
    if (!running_) {
      begin();
    } else {
      look();
    }
    return true;
  }

  // Once the GPU has been told to give up, nobody waits for messages any more.
  bool asked() const override {
    return asked_.load(std::memory_order_seq_cst) != ended_ &&
           std::atomic_ref<std::uint32_t>(*abort_).load(std::memory_order_relaxed) == 0;
  }

 private:
  struct Message {
    std::int64_t command = 0;
    int peer = 0;
    bool sends = false;
    bool active = false;
  };

  // On CUDA's thread. The staging has been packed, and what had arrived there before has been unpacked.
  void ask() {
    asked_.fetch_add(1, std::memory_order_seq_cst);
    Worker::instance().wake();
  }

  // Receives first, so that nothing arrives unexpected that need not.
  void begin() {
    running_ = true;
    for (const bool sends : {false, true}) {
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (messages_[i].sends != sends) continue;
        const int code = MPI_Start(&requests_[i]);
        if (code != MPI_SUCCESS) return fail(i, "MPI_Start", code);
        messages_[i].active = true;
      }
    }
    left_ = requests_.size();
  }

  // One by one: where several are tested together, not every MPI leaves errors to the communicator's handler.
  void look() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (!messages_[i].active) continue;
      int ended = 0;
      const int code = MPI_Test(&requests_[i], &ended, MPI_STATUS_IGNORE);
      if (code == MPI_SUCCESS && ended == 0) continue;
      messages_[i].active = false;
      if (code != MPI_SUCCESS) return fail(i, "MPI_Test", code);
      std::atomic_ref<std::uint64_t>(*word(i)).store((ended_ + 1) * kSignal, std::memory_order_release);
      --left_;
    }
    if (left_ > 0) return;
    running_ = false;
    ++ended_;
  }

  // Ends the kernels that wait; the engine then asks why.
  void fail(std::size_t message, const char* call, int code) {
    const Message& m = messages_[message];
    failed_ = message;
    failure_ = fmt::format("rank {}: {}: epoch {} did not end: #{} {} with rank {}: {} failed: {}", rank_, operation_,
                           ended_ + 1, m.command, m.sends ? "send" : "recv", m.peer, call, mpi_error_text(code));
    broken_.store(true, std::memory_order_release);
    std::atomic_ref<std::uint32_t>(*abort_).store(1);
  }

  std::uint32_t* abort_;
  int rank_;
  std::string operation_;
  std::shared_ptr<std::byte> words_;  // per message, in host memory that the GPU reads
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;
  std::atomic<std::uint64_t> asked_{0};  // epochs
  std::uint64_t ended_ = 0;              // epochs; from here on the worker's alone
  bool running_ = false;
  std::size_t left_ = 0;
  std::size_t failed_ = 0;  // and its text: written before `broken_`
  std::string failure_;
  std::atomic<bool> broken_{false};
};

class StagedMessage final : public Channel {
 public:
  StagedMessage(std::shared_ptr<Batch> batch, const ChannelRequest& r)
      : batch_(std::move(batch)), message_(batch_->add(r)) {}

  // The batch needs asking once an epoch.
  void enqueue(Stream stream) override { stream_ = stream; }
  void end_group() override { batch_->enqueue(stream_); }
  const std::uint64_t* ended() const override { return batch_->word(message_); }
  std::string failure() const override { return batch_->failure(message_); }

 private:
  std::shared_ptr<Batch> batch_;
  std::size_t message_;
  Stream stream_ = nullptr;
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
