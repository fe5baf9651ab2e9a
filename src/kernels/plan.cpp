// Operation::device: an operation's plan lowered for a group of blocks, and what kernels and the host signal each other
// about its epochs.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "engines/gpu/program.hpp"
#include "kernels/failure.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/host_proxy.hpp"
#include "kernels/jobs.hpp"
#include "kernels/lowered.hpp"
#include "kernels/registry.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/wait_until.hpp"
#include "tasuki/error.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki {
namespace {

using device::Word;

constexpr int kMostBlocks = 1 << 14;
constexpr int kMostGpuThreads = 1024;

}  // namespace

/// All handles of one operation.
class Operation::Kernels final : public KernelRuns {
 public:
  explicit Kernels(Operation::State& operation)
      : operation_(operation),
        runtime_(runtime_of(operation.context())),
        registry_(KernelRegistry::of(runtime_)),
        plan_(operation.plan()),
        on_gpu_(runtime_.gpus != nullptr) {
    watched_ = registry_.watch(on_gpu_, [this] { check(); });
  }
  ~Kernels() override {
    if (runtime_.inherited()) (void)proxy_.release();  // the thread is the parent's
    // Memory of a GPU is the parent's, and so is what would give it back.
    for (auto& lowered : all_)
      if (runtime_.inherited() && on_gpu_) (void)lowered.release();
  }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  /// A handle of an operation, to which its first one adds what runs its epochs in kernels.
  static device::Handle handle_of(Operation::State& operation, const KernelGroup& group, bool reduces,
                                  std::uint32_t version);

  device::Handle handle(const KernelGroup& group, bool reduces) {
    const int threads = on_gpu_ ? group.threads : group.cpu_threads;
    if (all_.empty() || !all_.back()->is_for(group, threads)) lower_for(group, threads);
    if (reduces_ && !reduces)
      throw Error(fmt::format(
          "{}: device: it combines elements; call device_reducing, whose handle has the code for it", who()));
    Lowered& lowered = *all_.back();
    device::Handle handle = lowered.handle();
    handle.run.stop = registry_.stop(on_gpu_);
    handle.run.deadline = static_cast<std::uint64_t>(seconds_in_kernel(runtime_) * 1e9);
    handle.run.selection = 0;
    for (std::size_t p = 0; p < lowered.pairs().size(); ++p) {
      if (*lowered.pairs()[p] != 0) handle.run.selection |= std::uint64_t{1} << p;
    }
    set_turn(handle);
    return handle;
  }

  std::string group() const { return all_.empty() ? std::string() : all_.back()->how(); }

  std::uint64_t ended(const char* call) override {
    check();
    if (on_gpu_ || all_.empty()) return 0;  // the engine counts them
    for (const auto& lowered : all_)
      if (lowered->users->load(std::memory_order_acquire) > 0)
        throw Error(
            fmt::format("{}: {} while a kernel that has its handle runs; call Resident::wait first", who(), call));
    const Lowered& lowered = *all_.back();
    const Word ended = lowered.ended() / static_cast<Word>(lowered.blocks());
    if (lowered.begun() != lowered.ended())
      throw Error(fmt::format("{}: {} while an epoch that a kernel has started is active; wait for it in the kernel",
                              who(), call));
    return ended - std::exchange(counted_, ended);
  }

  // What kernels on a GPU use is given back only after they have ended, too: CUDA sees to it.
  void await() const override {
    for (const auto& lowered : all_) await_users(lowered->users);
  }

  void stop() override { proxy_.reset(); }

  void host_begins() override {
    if (!on_gpu_ && !all_.empty()) all_.back()->host_begins();
  }

 private:
  std::string who() const { return fmt::format("rank {}: {}", runtime_.rank(), operation_.name()); }

  void check_group(int blocks, int threads) const {
    if (blocks < 1 || blocks > kMostBlocks)
      throw Error(
          fmt::format("{}: device: argument 'blocks' is {}; it must be between 1 and {}", who(), blocks, kMostBlocks));
    const int least = on_gpu_ ? static_cast<int>(device::lowered::kLanes) : 1;
    const int most = on_gpu_ ? kMostGpuThreads : device::detail::kMostThreads;
    if (threads < least || threads > most || threads % least != 0)
      throw Error(fmt::format("{}: device: argument '{}' is {}; it must be {}between {} and {}", who(),
                              on_gpu_ ? "threads" : "cpu_threads", threads, on_gpu_ ? "a multiple of 32 " : "", least,
                              most));
  }

  // Whether the process's thread can carry a command for a kernel: a message in pinned memory for one on a GPU, any
  // message for one on threads of the host.
  bool can_be_carried(std::size_t command) const {
    const Channel& channel = operation_.executor().program().channels[command];
    const Verb verb = plan_.commands[command].verb;
    return channel.thread != nullptr ||
           (!on_gpu_ && channel.host != nullptr && (verb == Verb::send || verb == Verb::recv));
  }

  // Throws for what only the host can start. True if there are messages for which a kernel asks the process's thread.
  bool check_paths() {
    const auto& channels = operation_.executor().program().channels;
    bool messages = false;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (!channels[i].carried()) continue;
      const Command& c = plan_.commands[i];
      const std::string& path = plan_.paths[static_cast<std::size_t>(c.path)];
      if (!can_be_carried(i))
        throw Error(
            ErrorKind::not_possible,
            fmt::format("{}: device: what goes to or comes from rank {} travels by path '{}', which a kernel cannot "
                        "start; {}, or let the host start this operation",
                        who(), c.peer, path, advice(c.peer)));
      if (c.loop >= 0)
        throw Error(
            ErrorKind::not_possible,
            fmt::format("{}: device: what goes to or comes from rank {} travels by path '{}' in chunks, which a kernel "
                        "cannot start; choose another algorithm, or let the host start this operation",
                        who(), c.peer, path));
      messages = true;
    }
    if (messages && runtime_.thread_level() < MPI_THREAD_MULTIPLE)
      throw Error(
          ErrorKind::not_possible,
          fmt::format("{}: device: a kernel's messages are sent by a thread of Tasuki's, which needs "
                      "MPI_THREAD_MULTIPLE, but MPI was started with less; use MPI_Init_thread, or let the host start "
                      "this operation",
                      who()));
    return messages;
  }

  std::string advice(int peer) const {
    const Topology& topology = runtime_.topology();
    if (!topology.same_host(peer, runtime_.rank()) || !topology.same_island(peer, runtime_.rank()))
      return fmt::format("rank {} is {}: force path 'mpi'", peer,
                         topology.same_host(peer, runtime_.rank()) ? "in another island" : "on another host");
    if (on_gpu_) return "force path 'peer:put,peer:eager,peer:ll' or 'mpi'";
    return "force path 'shared:put,shared:eager,shared:pull' or 'mpi'";
  }

  // The plan for a group of so many threads a block, and what the host needs to carry its messages.
  GpuProgram lower_plan(const KernelGroup& group, int threads) {
    check_group(group.blocks, threads);
    const bool messages = check_paths();
    const Program& program = operation_.executor().program();
    if (messages && !on_gpu_ && !proxy_)
      proxy_ = std::make_unique<HostProxy>(
          program, [this] { registry_.request_stop(false); }, [this] { return runtime_.over(); });
    GpuProgram lowered = lower(program, group.blocks, on_gpu_ && runtime_.gpus->atomics(), warps_of(threads),
                               proxy_ ? proxy_->channels() : ThreadChannels());
    for (const int part : kPartsLowered) {
      const bool in_turns = lowered.blocks[part] > group.blocks && lowered.rounds[part].size() == 1;
      if (in_turns && static_cast<std::size_t>(lowered.blocks[part]) != lowered.tasks[part].size())
        throw Error(
            fmt::format("{}: device: more tasks than blocks, but not all of them of one block (a defect in "
                        "Tasuki)",
                        who()));
    }
    if (messages && !served_) served_ = registry_.serve();
    return lowered;
  }
  int warps_of(int threads) const { return on_gpu_ ? threads / static_cast<int>(device::lowered::kLanes) : threads; }

  void lower_for(const KernelGroup& group, int threads) {
    const int blocks = group.blocks;
    const BlockCells cells(operation_.cells(), operation_.buffers(), group.cells);
    std::optional<GpuProgram> program;
    const auto prepare = [&] {
      program.emplace(lower_plan(group, threads));
      check_cells(group, cells, who());
    };
    GroupDeal dealt;
    if (group.cells.empty()) {
      prepare();
      dealt.how = described(group, threads, "the group has no cells");
    } else {
      // A rank that was not given cells does not come: then the text of those that wait must name them.
      all_do(runtime_, operation_.name() + ": device with argument 'cells'", [&] { without_prefix(prepare); });
      dealt = deal_group(runtime_, plan_, group, threads, cells, warps_of(threads), *program);
    }
    const GpuProgram& lowered = *program;
    auto fresh = std::make_unique<Lowered>(lowered, plan_.commands.size(), group, threads, on_gpu_,
                                           std::move(dealt.barrier_free), std::move(dealt.how));
    if (fresh->turns() > 1) check_turns(lowered, blocks);
    device::Handle& handle = fresh->handle();
    KernelRegistry::Facts facts{operation_.name(), blocks, threads, [this] { return operation_.active(); }};
    fresh->users = facts.users;
    std::tie(handle.heading.number, fresh->registered) = registry_.add(Passed::handle, std::move(facts));
    if (on_gpu_ && operation_.where() == Memory::device) {
      const HostEpochs host = operation_.engine().share_epochs(fresh->epochs());
      handle.before = host.before;
      handle.by_host[0] = host.begun[0];
      handle.by_host[1] = host.begun[1];
    } else {
      handle.before = operation_.executor().epoch();
      counted_ = 0;
    }
    if (!all_.empty()) all_.back()->registered.reset();  // older kernels may still look at its memory
    all_.push_back(std::move(fresh));
    reduces_ = lowered.reduces;
  }

  // Agreements name the rank and the operation themselves.
  template <class F>
  void without_prefix(const F& f) const {
    try {
      f();
    } catch (const Error& error) {
      const std::string text = error.what();
      const std::string prefix = who() + ": device: ";
      throw Error(error.kind(), text.starts_with(prefix) ? text.substr(prefix.size()) : text);
    }
  }

  // A block waits for lines until they have come. If what brings them depends on what the same block does later, it
  // would wait for ever.
  void check_turns(const GpuProgram& lowered, int blocks) const {
    const bool lines =
        std::any_of(plan_.buffers.begin(), plan_.buffers.end(), [](const Buffer& b) { return b.home == Home::ll; });
    if (!lines || plan_.deps.empty()) return;
    std::size_t most = 0;
    for (const int part : kPartsLowered) most = std::max(most, lowered.tasks[part].size());
    throw Error(
        fmt::format("{}: device: a group of {} blocks; what it does by path 'peer:ll' needs {}: give argument "
                    "'blocks' as many, or force path 'peer:put,peer:eager'",
                    who(), blocks, most));
  }

  // Of an alternating halo the epoch's number says which copies must be shown.
  void set_turn(device::Handle& handle) const {
    handle.alternating = 0;
    if (plan_.commands.empty()) return;  // the host does not count epochs that do nothing
    std::optional<int> turn;
    const auto& buffers = operation_.buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].alternating) continue;
      const int mine = (*buffers[i].current + operation_.first_copy(i)) % 2;
      if (turn && *turn != mine)
        throw Error(
            fmt::format("{}: device: field {} has been swapped more or less often than others of this "
                        "alternating halo; swap all of them exactly once between two starts",
                        who(), buffers[i].name));
      turn = mine;
    }
    if (!turn) return;
    handle.alternating = 1;
    handle.swapped = static_cast<Word>(*turn);
  }

  void check() {
    for (const auto& lowered : all_) {
      const PlanFailure& failure = lowered->failure();
      const std::uint32_t set =
          std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(failure.set)).load(std::memory_order_acquire);
      if (set == 0) continue;
      std::string text = proxy_ ? proxy_->failure() : std::string();
      for (const auto& channel : operation_.executor().program().channels)
        if (text.empty() && channel.thread != nullptr) text = channel.thread->failure();
      if ((set & device::kOtherVersion) != 0) text = describe_other_version(who(), set);
      if (text.empty()) text = describe(*lowered, failure);
      const ErrorKind kind = kind_of_ended_wait(runtime_);
      runtime_.fail(text, kind);
      throw Error(kind, text);
    }
  }

  std::string describe(const Lowered& lowered, const PlanFailure& f) const {
    const std::string in = fmt::format("{}: in block {} of a kernel", who(), f.block);
    switch (f.why) {
      case Why::group:
        return fmt::format(
            "{}: called by a group of {} blocks of {} threads, or by a block outside of it; the handle is "
            "for {} blocks of {}",
            in, f.value, f.target, lowered.blocks(), lowered.threads());
      case Why::active:
        return fmt::format("{}: start of epoch {} while the one before is active; wait for it first", in, f.epoch);
      case Why::idle:
        return fmt::format("{}: wait without a start before it", in);
      case Why::turn:
        return fmt::format(
            "{}: an alternating halo is started for epoch {} after {} swaps since the handle was made, so "
            "that it shows the copy of another epoch: swap exactly once between two starts, and say so by "
            "argument 'swaps'",
            in, f.epoch, f.value);
      case Why::has_barriers:
        return fmt::format(
            "{}: a BarrierFreeRun of a handle for {}; make one only where device::barrier_free says that the group is "
            "barrier-free",
            in, lowered.how());
      case Why::asked:
        return fmt::format("{}: failed: the host has ended its kernels' waits{}", in, because());
      case Why::waited:
      case Why::group_barrier:
      case Why::aborted:
        break;
    }
    const std::string why =
        f.why == Why::aborted
            ? "the host has ended its kernels' waits"
            : fmt::format(
                  "nine tenths of the deadline, {:.3g} s, have passed; TASUKI_DEADLINE or Context::set_deadline "
                  "allow more",
                  seconds_in_kernel(runtime_));
    return fmt::format("{}, {} {} did not end: {}: {}{}", in, f.command <= device::lowered::kNoStep ? "step" : "epoch",
                       f.epoch, awaited(lowered, f), why, because());
  }
  // Which rank has failed; empty if none has.
  std::string because() const {
    const std::string dead = runtime_.liveness().failure(runtime_.everyone());
    return dead.empty() ? dead : "; " + dead;
  }

  // What a wait was for: `#3 wait arrived.0<1 with rank 1 (at 4, needs 5)`.
  std::string awaited(const Lowered& lowered, const PlanFailure& f) const {
    if (f.command <= device::lowered::kNoStep)
      return fmt::format("it waited for block {}, which has ended step {}", device::lowered::kNoStep - f.command,
                         f.value);
    if (f.command < 0)
      return fmt::format("not all {} blocks of the group have come ({} of {} did)", lowered.blocks(),
                         f.value % static_cast<Word>(lowered.blocks()), lowered.blocks());
    const std::int32_t command = lowered.command_of(f.command, plan_.commands.size());
    const Command& c = plan_.commands[static_cast<std::size_t>(command)];
    const std::string with = c.peer >= 0 ? fmt::format(" with rank {}", c.peer) : "";
    if (c.verb == Verb::send || c.verb == Verb::recv)
      return fmt::format("it waited for #{} {}{}, which the process's thread carries", command, to_string(c.verb),
                         with);
    const bool counts = c.verb == Verb::wait && f.command == command;
    const std::uint64_t unit = counts && !lowered.on_gpu() ? 1 : kShares;
    return fmt::format("it waited for #{} {}{} (at {}, needs {})", command,
                       counts ? plan_.buffers[static_cast<std::size_t>(c.src)].label() : std::string(to_string(c.verb)),
                       with, f.value / unit, f.target / unit);
  }

  Operation::State& operation_;
  Runtime& runtime_;
  KernelRegistry& registry_;
  const Plan& plan_;
  const bool on_gpu_;
  bool reduces_ = false;
  std::uint64_t counted_ = 0;                  // on a processor: epochs of the newest that the operation knows of
  std::vector<std::unique_ptr<Lowered>> all_;  // the newest is valid; older ones may be in use
  std::unique_ptr<HostProxy> proxy_;           // on a processor: of the plan's messages, if there are any
  std::shared_ptr<void> served_;               // likewise, also on a GPU
  std::shared_ptr<void> watched_;
};

device::Handle Operation::Kernels::handle_of(Operation::State& operation, const KernelGroup& group, bool reduces,
                                             std::uint32_t version) {
  const Runtime& runtime = runtime_of(operation.context());
  refuse_other_version(fmt::format("rank {}: {}", runtime.rank(), operation.name()), version);
  operation.admit_kernels("device");
  if (runtime.gpus != nullptr && operation.where() != Memory::device && !operation.plan().commands.empty())
    throw Error(
        fmt::format("rank {}: {}: device: the operation is on host memory, but kernels of this context run on "
                    "GPUs; use fields on the device, or a context that uses no GPU",
                    runtime.rank(), operation.name()));
  if (!operation.kernel_runs()) operation.give_kernel_runs(std::make_shared<Kernels>(operation));
  return static_cast<Kernels&>(*operation.kernel_runs()).handle(group, reduces);
}

device::Handle Operation::device(const KernelGroup& group, std::uint32_t version) {
  return Kernels::handle_of(*state_, group, false, version);
}

std::string Operation::device_group() const {
  const auto& runs = state_->kernel_runs();
  return runs ? static_cast<const Kernels&>(*runs).group() : std::string();
}

device::ReducingHandle Operation::device_reducing(const KernelGroup& group, std::uint32_t version) {
  static_assert(sizeof(device::ReducingHandle) == sizeof(device::Handle));
  return std::bit_cast<device::ReducingHandle>(Kernels::handle_of(*state_, group, true, version));
}

}  // namespace tasuki
