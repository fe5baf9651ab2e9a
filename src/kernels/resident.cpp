// Resident: kernels that are running, as threads of the host or in a stream.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"
#include "memory/gpu.hpp"
#include "session/gpus.hpp"
#include "session/worker.hpp"
#include "tasuki/error.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki {
namespace {

constexpr int kMostCpuThreads = 1024;  // of a launch

using device::detail::CpuBlock;
using device::detail::CpuThread;

/// The threads of one launch.
class Threads {
 public:
  Threads(KernelRegistry& registry, int rank, int blocks, int threads, std::vector<KernelUsers> used,
          std::function<void(const CpuThread&)> kernel)
      : registry_(registry),
        rank_(rank),
        kernel_(std::move(kernel)),
        blocks_(static_cast<std::size_t>(blocks)),
        used_(std::move(used)),
        at_work_(blocks * threads),
        running_(blocks * threads) {
    for (const KernelUsers& users : used_) users->fetch_add(1);
    threads_.reserve(blocks_.size() * static_cast<std::size_t>(threads));
    for (int block = 0; block < blocks; ++block) {
      for (int thread = 0; thread < threads; ++thread) {
        CpuThread who;
        who.thread = thread;
        who.threads = threads;
        who.block = block;
        who.blocks = blocks;
        who.shared = &blocks_[static_cast<std::size_t>(block)];
        who.stopped = &stopped_;
        start(who);
      }
    }
  }
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  bool ended() const { return running_.load(std::memory_order_acquire) == 0; }
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  /// Whether a thread has thrown, or could not be started.
  bool stopped() const { return stopped_.load(); }
  /// Throws if a call of the kernel has failed, but not because a thread has thrown, which ends the others' waits.
  void check() {
    const std::lock_guard lock(stopping_);
    if (!stopped()) registry_.check();
  }
  /// Throws what a thread has thrown. After `join`.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  void start(const CpuThread& who) {
    if (stopped_.load()) return leave();
    try {
      threads_.emplace_back([this, who] { run(who); });
    } catch (const std::system_error& error) {
      stop(std::make_exception_ptr(
          Error(fmt::format("rank {}: launch_resident: thread {} of block {} could not be started: {}", rank_,
                            who.thread, who.block, error.what()))));
      leave();
    }
  }
  void run(const CpuThread& who) {
    try {
      kernel_(who);
    } catch (const device::detail::Stopped&) {
      // another thread has thrown, and that is what counts
    } catch (const device::detail::Strayed& error) {
      stop(std::make_exception_ptr(
          Error(fmt::format("rank {}: launch_resident: in block {} of a kernel, {}", rank_, who.block, error.what()))));
    } catch (...) {
      stop(std::current_exception());
    }
    who.shared->stuck.more();
    leave();
  }
  // Handles are released before the kernel's end is visible, because whoever sees the end may launch another kernel
  // with the same handle.
  void leave() {
    if (at_work_.fetch_sub(1) == 1)
      for (const KernelUsers& users : used_) users->fetch_sub(1, std::memory_order_release);
    running_.fetch_sub(1, std::memory_order_release);
  }
  // The other threads leave the next barrier of their group, and waits for other ranks.
  void stop(std::exception_ptr thrown) {
    const std::lock_guard lock(stopping_);
    if (stopped_.exchange(true)) return;
    thrown_ = std::move(thrown);
    registry_.abort();
  }

  KernelRegistry& registry_;
  const int rank_;
  const std::function<void(const CpuThread&)> kernel_;
  std::vector<CpuBlock> blocks_;
  std::mutex stopping_;
  std::atomic<bool> stopped_ = false;
  std::exception_ptr thrown_;
  const std::vector<KernelUsers> used_;
  std::atomic<int> at_work_;
  std::atomic<int> running_;
  std::vector<std::thread> threads_;
};

}  // namespace

class Resident::State {
 public:
  explicit State(const Context& context) : context_(context), registry_(KernelRegistry::of(runtime_of(context))) {
    // Not for kernels on threads, whose processor it would take.
    if (registry_.serves() && runtime_of(context).gpus != nullptr) awake_.emplace();
  }

  void run(int blocks, int threads, std::vector<KernelUsers> used, std::function<void(const CpuThread&)> kernel) {
    threads_.emplace(registry_, context_.rank(), blocks, threads, std::move(used), std::move(kernel));
  }
  void follow(Stream stream) {
    on_gpu_ = true;
    stream_ = stream;
  }

  void wait() {
    Runtime& runtime = runtime_of(context_);
    try {
      if (on_gpu_ && !ended_) refuse_captured(runtime, "Resident::wait", stream_);
      // A kernel may compute for any time. Its calls have the deadline, and if one has failed it need not end soon.
      wait_without_deadline(
          runtime, runtime.everyone(),
          [this] {
            if (ended()) return true;
            threads_ ? threads_->check() : registry_.check();
            return false;
          },
          [&] { return fmt::format("rank {}: Resident::wait: the kernel did not end", runtime.rank()); });
      if (threads_) threads_->join();
    } catch (const Interruption&) {
      throw;  // the kernel keeps running
    } catch (const Error& error) {
      // What a thread has thrown comes first: other ranks may have given up because of it.
      const bool thrown = threads_ && threads_->stopped();
      registry_.abort();
      finish();
      if (thrown) rethrow();
      // The kernel has said which of its waits failed, unless it waits for nothing.
      try {
        registry_.check();
      } catch (const Error& failure) {
        if (std::string(failure.what()) != error.what())
          throw Error(failure.kind(), fmt::format("{}; {}", error.what(), failure.what()));
      }
      throw;
    }
    if (threads_) rethrow();
    ended_ = true;
    awake_.reset();
    registry_.check();
  }

  void finish() noexcept {
    if (threads_) threads_->join();
    try {
      while (on_gpu_ && !ended()) sched_yield();
    } catch (const Error&) {  // the GPU has failed, and nothing runs on it
    }
    ended_ = true;
    awake_.reset();
  }

 private:
  // What a thread has thrown, if one has; the other ranks get to know.
  void rethrow() {
    try {
      threads_->rethrow();
    } catch (const std::exception& thrown) {
      Runtime& runtime = runtime_of(context_);
      runtime.fail(fmt::format("a kernel of rank {} has thrown: {}", runtime.rank(), thrown.what()));
      throw;
    }
  }
  bool ended() const { return ended_ || (on_gpu_ ? gpu()->done(stream_) : threads_->ended()); }

  const Context context_;
  KernelRegistry& registry_;
  std::optional<Worker::Awake> awake_;  // the process's thread, if the kernel may ask it
  std::optional<Threads> threads_;
  bool on_gpu_ = false;
  bool ended_ = false;  // the stream is not looked at any more: its owner may have destroyed it
  Stream stream_ = nullptr;
};

Resident::Resident(std::unique_ptr<State> state) : state_(std::move(state)) {}
Resident::Resident(Resident&&) noexcept = default;
Resident::~Resident() {
  if (state_) state_->finish();
}

void Resident::wait() {
  state_->wait();
}

namespace detail {

std::vector<std::uint32_t> numbers_in(const void* argument, std::size_t bytes) {
  std::vector<std::uint32_t> numbers;
  const auto* const begin = static_cast<const std::byte*>(argument);
  // A Heading and Neighbours begin so.
  for (std::size_t at = 0; at + sizeof(device::Heading) <= bytes; at += alignof(device::Heading)) {
    std::uint32_t version_and_number[2];
    std::memcpy(version_and_number, begin + at, sizeof version_and_number);
    if (version_and_number[0] == device::kKernelVersion && KernelRegistry::is_number(version_and_number[1]))
      numbers.push_back(version_and_number[1]);
  }
  return numbers;
}

namespace {

std::string not_valid(std::uint32_t number) {
  switch (KernelRegistry::kind_of(number)) {
    case Passed::handle:
      return "an argument is a handle that is not valid: its operation was freed or belongs to another context, or has "
             "a newer handle for another group; call device again";
    case Passed::team:
      return "an argument is a Team that is not valid: its KernelTeam was destroyed, or belongs to another context; "
             "call device of one of this context";
    case Passed::messages:
      return "an argument is Messages that are not valid: what they came from was destroyed, or belongs to another "
             "context; call device of some of this context";
    case Passed::neighbours:
      break;
  }
  return "an argument is Neighbours that are not valid: their BlockNeighbours were destroyed, or belong to another "
         "context; call device of some of this context";
}

std::string name_of(std::uint32_t number, const KernelRegistry::Facts& facts) {
  return KernelRegistry::kind_of(number) == Passed::handle ? "the handle of " + facts.of : "the same BlockNeighbours";
}

}  // namespace

void check_number(const Context& context, const char* call, std::uint32_t number, int blocks, int threads) {
  Runtime& runtime = runtime_of(context);
  const std::string who = fmt::format("rank {}: {}: ", runtime.rank(), call);
  const KernelRegistry::Facts* const facts = KernelRegistry::of(runtime).find(number);
  if (facts == nullptr) throw Error(who + not_valid(number));
  const Passed kind = KernelRegistry::kind_of(number);
  if (kind == Passed::handle && facts->active())
    throw Error(fmt::format("{}{} is active, and a kernel that has its handle could not start it; wait for it first",
                            who, facts->of));
  if (kind == Passed::handle && (blocks < facts->blocks || threads != facts->threads))
    throw Error(
        fmt::format("{}an argument is a handle of {} for a group of {} blocks of {} threads, but the launch has {} "
                    "blocks of {}; launch as many, or make the handle for them",
                    who, facts->of, facts->blocks, facts->threads, blocks, threads));
  if (kind == Passed::neighbours && blocks != facts->blocks)
    throw Error(
        fmt::format("{}an argument has the neighbours of {} blocks, but the launch has {}; launch as many, or make "
                    "BlockNeighbours for them",
                    who, facts->blocks, blocks));
}

void check_block(const Context& context, const ResidentOptions& options, const KernelFacts& facts) {
  const std::string call = fmt::format("rank {}: launch_resident: argument", context.rank());
  if (options.blocks < 1) throw Error(fmt::format("{} 'blocks' is {}; it must be 1 or more", call, options.blocks));
  if (options.threads < 1 || options.threads > facts.block_threads)
    throw Error(
        fmt::format("{} 'threads' is {}; this kernel takes 1 to {}", call, options.threads, facts.block_threads));
  if (options.shared_bytes < 0 || options.shared_bytes > facts.shared_of_block)
    throw Error(
        fmt::format("{} 'shared_bytes' is {}; a block has {}", call, options.shared_bytes, facts.shared_of_block));
}

void check_room(const Context& context, const ResidentOptions& options, const KernelFacts& facts, int each) {
  const int fit = each * facts.multiprocessors;
  if (options.blocks <= fit) return;
  // Each limit by itself: the least is the one that was hit.
  constexpr int kWarp = 32;
  constexpr int kRegisterUnit = 256;  // a warp's registers come in so many
  const int warps = (options.threads + kWarp - 1) / kWarp;
  const int warp_registers = (facts.thread_registers * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  const std::int64_t shared = facts.block_shared + options.shared_bytes;
  std::string limit = fmt::format("blocks ({} a multiprocessor)", facts.blocks);
  std::int64_t least = facts.blocks;
  const auto consider = [&](std::int64_t has, std::int64_t takes, const std::string& name) {
    if (takes < 1 || has / takes >= least) return;
    least = has / takes;
    limit = name;
  };
  consider(facts.threads, warps * kWarp, fmt::format("threads ({} a block)", options.threads));
  consider(facts.registers, warps * warp_registers, fmt::format("registers ({} a thread)", facts.thread_registers));
  consider(facts.shared, shared, fmt::format("shared memory ({} bytes a block)", shared));
  throw Error(
      ErrorKind::not_possible,
      fmt::format(
          "rank {}: launch_resident: {} blocks of {} threads do not fit on GPU {} ({}) at once; {} would, {} on "
          "each of {} multiprocessors: what runs out is {}",
          context.rank(), options.blocks, options.threads, facts.gpu, facts.gpu_name, fit, each, facts.multiprocessors,
          limit));
}

void check_gpu_launch(const Context& context, const ResidentOptions& options) {
  Runtime& runtime = runtime_of(context);
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && blocking[0] == '1')
    throw Error(
        fmt::format("rank {}: launch_resident: CUDA_LAUNCH_BLOCKING=1 would make the host wait for a kernel that waits "
                    "for other ranks; unset it",
                    runtime.rank()));
  runtime.refuse_if_failed("launch_resident");
  if (!runtime.gpus)
    throw Error(fmt::format("rank {}: launch_resident: the context uses no GPU; call use_gpu on all ranks first",
                            runtime.rank()));
  refuse_foreign(runtime, fmt::format("rank {}: launch_resident: ", runtime.rank()), options.stream);
  if (options.stream != nullptr && gpu()->capturing(options.stream))
    throw Error(
        fmt::format("rank {}: launch_resident: the stream is being captured into a graph, which kernels that "
                    "communicate by themselves cannot be part of; launch it outside",
                    runtime.rank()));
  KernelRegistry::of(runtime).check();
}

Resident watch_gpu_launch(const Context& context, Stream stream) {
  auto state = std::make_unique<Resident::State>(context);
  state->follow(stream);
  return Resident(std::move(state));
}

Resident run_on_threads(const Context& context, const ResidentOptions& options,
                        const std::vector<std::uint32_t>& numbers,
                        std::function<void(const device::detail::CpuThread&)> kernel) {
  Runtime& runtime = runtime_of(context);
  runtime.refuse_if_failed("launch_resident");
  const std::string call = fmt::format("rank {}: launch_resident", runtime.rank());
  if (runtime.gpus)
    throw Error(
        ErrorKind::not_possible,
        fmt::format("{}: the context uses GPUs, but this kernel was not compiled for one; compile it with nvcc", call));
  if (options.blocks < 1 || options.blocks > kMostCpuThreads)
    throw Error(
        fmt::format("{}: argument 'blocks' is {}; it must be between 1 and {}", call, options.blocks, kMostCpuThreads));
  if (options.cpu_threads < 1 || options.cpu_threads > device::detail::kMostThreads)
    throw Error(fmt::format("{}: argument 'cpu_threads' is {}; it must be between 1 and {}", call, options.cpu_threads,
                            device::detail::kMostThreads));
  if (options.blocks * options.cpu_threads > kMostCpuThreads)
    throw Error(fmt::format("{}: {} blocks of {} threads are {} threads; {} would fit", call, options.blocks,
                            options.cpu_threads, options.blocks * options.cpu_threads, kMostCpuThreads));
  KernelRegistry& registry = KernelRegistry::of(runtime);
  registry.check();
  std::vector<KernelUsers> used;
  for (const std::uint32_t number : numbers) {
    const KernelRegistry::Facts& facts = *registry.find(number);  // which `check_number` has found
    if (std::find(used.begin(), used.end(), facts.users) != used.end()) continue;
    const Passed kind = KernelRegistry::kind_of(number);
    const bool by_one = kind == Passed::handle || kind == Passed::neighbours;
    if (by_one && facts.users->load(std::memory_order_acquire) > 0)
      throw Error(fmt::format("{}: a kernel that has {} still runs; wait for it first", call, name_of(number, facts)));
    used.push_back(facts.users);
  }
  auto state = std::make_unique<Resident::State>(context);
  state->run(options.blocks, options.cpu_threads, std::move(used), std::move(kernel));
  return Resident(std::move(state));
}

}  // namespace detail
}  // namespace tasuki
