// Engine `stream`: for operations on GPU memory. An epoch is one kernel in the caller's stream (or two: start and
// wait), which runs the lowered plan (gpu_program.hpp). Messages that no kernel carries come between two kernels, or
// beside them where something else of the caller's may come between start and wait. The epoch's number lives on the
// GPU, so that a captured graph can be replayed.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gpu_clock.cuh"
#include "engines/gpu_copy.cuh"
#include "engines/gpu_program.hpp"
#include "tasuki/cuda.cuh"
#include "topology/gpu_memory.hpp"

namespace tasuki {
namespace {

constexpr unsigned kPollsPerLook = 256;  // polls between two looks at the clock and at the abort word
constexpr std::uint32_t kShared =
    24 << 10;  // bytes of a task that a block fetches at once; larger ones stay where they are

// What lasts from epoch to epoch, on the GPU.
struct State {
  unsigned long long tickets[kParts];  // by parts: how many blocks have taken one in launches that count themselves
  unsigned long long recorded;         // events, if traced
  std::uint32_t failed;
};

// Where a wait that gives up says so; in host memory.
struct Failure {
  std::uint32_t set;
  std::int32_t command;
  std::uint64_t epoch;
  std::uint64_t value;
  std::uint64_t target;
};

struct Launch {
  const std::byte* bytes;
  std::uint64_t* ends;  // per command: what those that depend on it wait for
  State* state;
  Failure* failure;
  const std::uint32_t* abort;
  GpuEvent* events;             // of traced kernels
  std::uint64_t epoch;          // 0: this launch counts itself
  std::uint64_t counted;        // epochs before launches began to count themselves
  std::uint64_t selection;      // bit p: the copy of pair p
  std::uint64_t patience;       // ns
  std::int32_t blocks[kParts];  // by parts
  std::int32_t parts;
  std::int32_t twin;  // other parts that may have been launched in this one's place in earlier epochs, or 0
  GpuRound round[2];
  GpuTask tasks[kGpuTasks];
};

__device__ std::uint64_t load_acquire(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}

__device__ void store_release(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

__device__ void add_release(std::uint64_t* p, std::uint64_t value) {
  asm volatile("red.release.sys.add.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

__device__ bool failed(const Launch& l) {
  return *static_cast<volatile std::uint32_t*>(&l.state->failed) != 0;
}

__device__ void record(const Launch& l, const GpuStep& step, std::uint64_t epoch, std::uint64_t begin) {
  const auto at = atomicAdd(&l.state->recorded, 1ull);
  l.events[at % kGpuEvents] = {epoch, begin, now_ns(), step.command, 0};
}

// How long a thread goes on looking for what a step waits for.
class Patience {
 public:
  __device__ Patience(const Launch& l, const GpuStep& step, std::uint64_t epoch) : l_(l), step_(step), epoch_(epoch) {}

  // After a look in vain, which showed `value` instead of `target`: false if nobody can be waited for any longer.
  __device__ bool more(std::uint64_t value, std::uint64_t target) {
    if (polls_ == 0) begin_ = now_ns();
    if (++polls_ % kPollsPerLook != 0) return true;
    if (failed(l_)) return false;
    const bool told = *static_cast<const volatile std::uint32_t*>(l_.abort) != 0;
    if (!told && now_ns() - begin_ < l_.patience) return true;
    if (atomicExch(&l_.state->failed, 1u) == 0) {
      l_.failure->command = step_.command;
      l_.failure->epoch = epoch_;
      l_.failure->value = value;
      l_.failure->target = target;
      __threadfence_system();
      *static_cast<volatile std::uint32_t*>(&l_.failure->set) = 1;
    }
    return false;
  }

 private:
  const Launch& l_;
  const GpuStep& step_;
  std::uint64_t epoch_;
  std::uint64_t begin_ = 0;
  unsigned polls_ = 0;
};

// Polls until the counter has reached `target`. False if nobody can be waited for any longer.
__device__ bool await(const Launch& l, const std::uint64_t* counter, std::uint64_t target, const GpuStep& step,
                      std::uint64_t epoch) {
  Patience patience(l, step, epoch);
  for (;;) {
    const std::uint64_t value = load_acquire(counter);
    if (value >= target) return true;
    if (!patience.more(value, target)) return false;
  }
}

__device__ std::uint64_t target_of(const GpuStep& step, std::uint64_t epoch) {
  if (step.verb == Verb::wait) {
    if (epoch > step.lag) {
      epoch -= step.lag;
    } else if (step.credit != 0) {
      return 0;
    } else {
      epoch = 1;
    }
  }
  return ((epoch - 1) * step.per_epoch + step.index + 1) * kSignal;
}

__device__ std::byte* base_of(const Launch& l, const GpuPlace& place, std::uint64_t epoch) {
  if (place.copies == 1) return place.base;
  std::uint64_t copy = place.pair >= 0 ? (l.selection >> place.pair) & 1 : 0;
  if (place.takes_turns != 0) copy = (copy + epoch - 1) % place.copies;
  return place.base + static_cast<std::int64_t>(copy) * place.stride;
}

// A task as its header says, wherever its bytes are.
struct Task {
  const std::byte* at;
  __device__ const GpuTaskHeader& header() const { return *reinterpret_cast<const GpuTaskHeader*>(at); }
  template <class T>
  __device__ const T* list(std::int32_t offset) const {
    return reinterpret_cast<const T*>(at + offset);
  }
};

template <class Unit, int Most, class Patient>
__device__ bool move_some(const GpuStep& step, const GpuTile& tile, std::uint32_t stamp, const Patient& patient) {
  if (step.stamped == kStampedSource) return unstamp_tile<Unit, Most>(tile, stamp, patient);
  if (step.stamped == kStampedTarget) {
    stamp_tile<Unit, Most>(tile, stamp);
  } else {
    move_tile<Unit, Most>(tile);
  }
  return true;
}

// In an exchange of little a tile has one unit a thread: nobody computes the places of others.
template <class Unit, class Patient>
__device__ bool move_unit_tile(const GpuStep& step, const GpuTile& tile, std::uint32_t stamp, const Patient& patient) {
  return step.tile_units == 1 ? move_some<Unit, 1>(step, tile, stamp, patient)
                              : move_some<Unit, kTileUnits>(step, tile, stamp, patient);
}

// Which of the copies a tile belongs to: by the whole warp, a copy a thread.
__device__ int copy_of(const GpuCopy* copies, int count, std::uint32_t tile) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int first = 0;; first += 32) {
    const bool before = first + lane < count && copies[first + lane].first_tile <= tile;
    const int found = __popc(__ballot_sync(~0u, before));
    if (found < 32 || first + 32 >= count) return first + found - 1;
  }
}

// The tiles of a step that are this warp's. False if something that was to be moved never came.
__device__ bool move(const Launch& l, const GpuStep& step, const GpuCopy* copies, const GpuDim* all_dims,
                     std::uint64_t epoch, std::uint32_t warp, std::uint32_t warps) {
  const std::byte* src = base_of(l, step.src, epoch);
  std::byte* dst = base_of(l, step.dst, epoch);
  const auto stamp = static_cast<std::uint32_t>(epoch);
  Patience patience(l, step, epoch);
  const auto patient = [&] { return patience.more((epoch - 1) * kSignal, epoch * kSignal); };
  copies += step.first_copy;
  for (std::uint32_t tile = warp; tile < step.tiles; tile += warps) {
    const GpuCopy& copy = copies[copy_of(copies, step.copies, tile)];
    const GpuTile t{copy,
                    all_dims + copy.first_dim,
                    (tile - copy.first_tile) * 32 * step.tile_units + threadIdx.x % 32,
                    step.tile_units,
                    src,
                    dst};
    bool came = true;
    if (step.verb == Verb::reduce) {
      came = add_tile_of(step.dtype, t, step.stamped == kStampedSource, stamp, patient);
    } else if (copy.log_unit == 4) {
      came = move_unit_tile<uint4>(step, t, stamp, patient);
    } else if (copy.log_unit == 3) {
      came = move_unit_tile<uint2>(step, t, stamp, patient);
    } else if (copy.log_unit == 2) {
      came = move_unit_tile<std::uint32_t>(step, t, stamp, patient);
    } else if (copy.log_unit == 1) {
      move_tile<std::uint16_t, kTileUnits>(t);
    } else {
      move_tile<std::uint8_t, kTileUnits>(t);
    }
    if (__all_sync(~0u, came) == 0) return false;
  }
  return true;
}

__device__ bool deps_ended(const Launch& l, const Task& task, const GpuStep& step, std::uint64_t epoch) {
  const auto* deps = task.list<std::int32_t>(task.header().deps) + step.first_dep;
  for (std::int32_t d = 0; d < step.deps; ++d) {
    if (!await(l, &l.ends[deps[d]], epoch * kSignal, step, epoch)) return false;
  }
  return true;
}

// Adds this block's share; all that its threads have stored comes before (they have met at a barrier).
__device__ void give(std::uint64_t* counter, std::uint64_t value, std::uint32_t block, std::uint32_t blocks) {
  if (blocks == 1) {
    store_release(counter, value);
  } else {
    add_release(counter, block == 0 ? kSignal - blocks + 1 : 1);
  }
}

// A lane that moves data, by all threads of `blocks` blocks.
template <bool kTraced>
__device__ void run_lane(const Launch& l, const Task& task, std::uint32_t block, std::uint32_t blocks,
                         std::uint64_t epoch) {
  const auto& header = task.header();
  const auto* steps = task.list<GpuStep>(header.steps);
  const std::int32_t count = *task.list<std::int32_t>(header.ends);
  const std::uint32_t warp = threadIdx.x / 32 * blocks + block;
  const std::uint32_t warps = blocks * (kGpuThreads / 32);
  std::uint32_t dealt = 0;  // tiles of the steps so far: the next one's first is for the warp after their last
  bool came = true;         // whatever this thread has waited for
  for (std::int32_t s = 0; s < count; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? now_ns() : 0;
    const bool watched = kTraced && block == 0 && threadIdx.x == 0;
    if (step.deps > 0 || step.verb == Verb::wait) {
      if (threadIdx.x == 0) {
        came = came && deps_ended(l, task, step, epoch) &&
               (step.verb != Verb::wait || await(l, step.counter, target_of(step, epoch), step, epoch));
      }
      if (__syncthreads_and(came) == 0) return;
    }
    if (step.tiles > 0 && came) {
      came = move(l, step, task.list<GpuCopy>(header.copies), task.list<GpuDim>(header.dims), epoch,
                  (warp + warps - dealt % warps) % warps, warps);
    }
    dealt += step.tiles;
    if (step.verb == Verb::signal || step.verb == Verb::reduce || step.awaited != 0) {
      if (__syncthreads_and(came) == 0) return;
      if (threadIdx.x == 0 && step.verb == Verb::signal) give(step.counter, target_of(step, epoch), block, blocks);
      if (threadIdx.x == 0 && step.awaited != 0) give(&l.ends[step.command], epoch * kSignal, block, blocks);
    }
    if (watched && came) record(l, step, epoch, begin);
  }
}

// A lane that moves nothing, by one thread.
template <bool kTraced>
__device__ void run_light_lane(const Launch& l, const Task& task, std::int32_t lane, std::uint64_t epoch) {
  const auto& header = task.header();
  const auto* ends = task.list<std::int32_t>(header.ends);
  const auto* steps = task.list<GpuStep>(header.steps);
  for (std::int32_t s = lane == 0 ? 0 : ends[lane - 1]; s < ends[lane]; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? now_ns() : 0;
    if (!deps_ended(l, task, step, epoch)) return;
    if (step.verb == Verb::wait && !await(l, step.counter, target_of(step, epoch), step, epoch)) return;
    if (step.verb == Verb::signal) store_release(step.counter, target_of(step, epoch));
    if (step.awaited != 0) store_release(&l.ends[step.command], epoch * kSignal);
    if (kTraced) record(l, step, epoch, begin);
  }
}

// The number of a launch that counts itself: kernels of one operation follow each other, so the tickets of one lie
// between those of its neighbours.
__device__ std::uint64_t own_epoch(const Launch& l) {
  const auto ticket = atomicAdd(&l.state->tickets[l.parts], 1ull);
  const std::uint64_t mine = l.counted + ticket / l.blocks[l.parts] + 1;
  if (l.twin == 0) return mine;
  return mine + *static_cast<volatile unsigned long long*>(&l.state->tickets[l.twin]) / l.blocks[l.twin];
}

// This block's share of a round. All loads that it begins with are on their way together.
template <bool kTraced>
__device__ void run_round(const Launch& l, const GpuRound& round, std::byte* fetched, const std::uint64_t& epoch) {
  const auto me = static_cast<std::int32_t>(blockIdx.x);
  if (me >= round.blocks) return;
  const bool dead = failed(l);  // then nothing is touched any more; the host will be told
  int t = round.first_task;
  for (int high = round.last_task; high - t > 1;) {
    const int middle = (t + high) / 2;
    (l.tasks[middle].first_block <= me ? t : high) = middle;
  }
  const GpuTask at = l.tasks[t];
  const std::int32_t end = t + 1 < round.last_task ? l.tasks[t + 1].first_block : round.blocks;
  const bool fits = at.bytes <= kShared;
  if (fits) {
    const auto* from = reinterpret_cast<const uint4*>(l.bytes + at.offset);
    for (std::uint32_t i = threadIdx.x; i < at.bytes / 16; i += kGpuThreads) {
      reinterpret_cast<uint4*>(fetched)[i] = from[i];
    }
  }
  if (__syncthreads_or(dead)) return;
  const Task task{fits ? fetched : l.bytes + at.offset};
  if (t > round.first_task) {
    run_lane<kTraced>(l, task, static_cast<std::uint32_t>(me - at.first_block),
                      static_cast<std::uint32_t>(end - at.first_block), epoch);
    return;
  }
  for (auto lane = static_cast<std::int32_t>(threadIdx.x); lane < task.header().lanes; lane += kGpuThreads) {
    run_light_lane<kTraced>(l, task, lane, epoch);
  }
}

// With two rounds or, some tenths of a microsecond sooner, with one.
template <bool kRounds, bool kTraced>
__global__ void __launch_bounds__(kGpuThreads, 2) run_plan(const __grid_constant__ Launch l) {
  __shared__ alignas(16) std::byte fetched[kShared];
  __shared__ std::uint64_t shared_epoch;
  // By the last warp, which often has nothing to fetch.
  if (threadIdx.x == kGpuThreads - 1) shared_epoch = l.epoch != 0 ? l.epoch : own_epoch(l);
  if constexpr (!kRounds) {
    run_round<kTraced>(l, l.round[0], fetched, shared_epoch);
    return;
  }
#pragma unroll 1
  for (int round = 0; round < 2; ++round) {
    if (round > 0) __syncthreads();  // nobody needs the first round's task any more
    run_round<kTraced>(l, l.round[round], fetched, shared_epoch);
  }
}

class StreamEngine final : public Engine {
 public:
  StreamEngine(Executor& executor, Runtime& runtime) : executor_(executor), runtime_(runtime) {
    // Blocks wait for other ranks, so all of them must find room at once: a block takes at most half of what a
    // multiprocessor has, so that there may be one on each, and whole multiprocessors are left to those who carry
    // messages.
    const int processors = runtime.gpus->processors();
    const auto& channels = executor.program().channels;
    const bool messages = std::any_of(channels.begin(), channels.end(), [](const auto& c) { return c != nullptr; });
    const int most = std::max(1, messages ? processors / 2 : processors);
    const int wanted = executor.program().blocks;
    program_ = lower(executor.program(), wanted > 0 ? std::min(wanted, most) : most, runtime.gpus->atomics());
    failure_ = {reinterpret_cast<Failure*>(gpu()->allocate_mapped(sizeof(Failure))),
                [](Failure* p) { gpu()->release_mapped(reinterpret_cast<std::byte*>(p)); }};
    upload();
    for (cudaEvent_t* event : {&ended_, &begun_, &read_, &unpacked_}) {
      TASUKI_CUDA(cudaEventCreateWithFlags, event, cudaEventDisableTiming);
    }
    int least = 0;
    int greatest = 0;
    TASUKI_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
    TASUKI_CUDA(cudaStreamCreateWithPriority, &beside_, cudaStreamNonBlocking, greatest);
  }

  ~StreamEngine() override {
    cudaDeviceSynchronize();  // whatever stream the last kernels are in: they use what is given back now
    if (launch_.events != nullptr) tell();
    for (cudaEvent_t event : {ended_, begun_, read_, unpacked_}) cudaEventDestroy(event);
    cudaStreamDestroy(beside_);
  }

  void enqueue(Stream stream, int parts) override {
    complain();
    if (!replayed_ && gpu()->capturing(stream)) {
      // From now on nobody on the host knows how often it has run.
      replayed_ = true;
      launch_.counted = epoch_;
      launch_.epoch = 0;
    }
    for (std::size_t p = 0; p < program_.pairs.size(); ++p) {
      const std::uint64_t bit = std::uint64_t{1} << p;
      const bool turns = (program_.turning & bit) != 0;
      if (turns && started_) continue;  // the kernel counts from the copy of the first epoch
      launch_.selection = (launch_.selection & ~bit) | (*program_.pairs[p] != 0 ? bit : 0);
    }
    started_ = true;
    if ((parts & kPartStart) != 0) ++epoch_;
    if (!replayed_) launch_.epoch = epoch_;
    launch_.patience = static_cast<std::uint64_t>(std::min(runtime_.deadline, 1e6) * 1e9);
    const bool channels = !program_.messages.empty();
    if (program_.in_line && parts == kBoth) {
      launch(kBefore, stream);
      messages(stream);
      launch(kAfter, stream);
      return;
    }
    if (channels && (parts & kPartStart) != 0) TASUKI_CUDA(cudaEventRecord, begun_, stream);
    // Before the channels' work, for which the host may have to wait: peers' channels wait for what this kernel tells.
    if (program_.direct) launch(parts, stream);
    if (channels && (parts & kPartStart) != 0) send_beside();
    if (channels && parts == kPartStart) {
      TASUKI_CUDA(cudaStreamWaitEvent, stream, read_, 0);  // what was sent may change from here on
    }
    if (channels && (parts & kPartWait) != 0) TASUKI_CUDA(cudaStreamWaitEvent, stream, unpacked_, 0);
  }

  void start() override {
    enqueue(nullptr, kBoth);
    TASUKI_CUDA(cudaEventRecord, ended_, nullptr);
  }

  bool test() override {
    const cudaError_t code = cudaEventQuery(ended_);
    if (code == cudaErrorNotReady) return false;
    check_cuda(code, "cudaEventQuery");
    complain();
    return true;
  }

  void stop() override {
    runtime_.gpus->abort();
    cudaDeviceSynchronize();
  }

 private:
  void launch(int parts, Stream stream) {
    const auto& tasks = program_.tasks[parts];
    launch_.parts = parts;
    launch_.twin = twin_of(parts);
    const auto& rounds = program_.rounds[parts];
    std::copy(rounds.begin(), rounds.end(), launch_.round);
    std::copy(tasks.begin(), tasks.end(), launch_.tasks);
    const bool one = rounds.size() == 1;
    const bool traced = launch_.events != nullptr;
    const auto kernel = traced ? (one ? run_plan<false, true> : run_plan<true, true>)
                               : (one ? run_plan<false, false> : run_plan<true, false>);
    kernel<<<static_cast<unsigned>(program_.blocks[parts]), kGpuThreads, 0, stream>>>(launch_);
    check_cuda(cudaGetLastError(), "launching an exchange");
  }

  // Every epoch has one launch of these parts or of their twin.
  std::int32_t twin_of(int parts) const {
    const bool in_line = program_.in_line;
    switch (parts) {
      case kBoth:
        return kPartWait;
      case kPartStart:
        return in_line ? kBefore : kBoth;
      case kPartWait:
        return in_line ? kAfter : kBoth;
      case kPartPack:
        return in_line ? kBefore : 0;
      case kPartUnpack:
        return in_line ? kAfter : 0;
      case kBefore:
        return kPartPack;
      case kAfter:
        return kPartUnpack;
      default:
        return 0;
    }
  }

  // What channels carry travels in a stream of its own, beside the kernel that serves the GPUs in reach.
  void send_beside() {
    TASUKI_CUDA(cudaStreamWaitEvent, beside_, begun_, 0);
    launch(kPartPack, beside_);
    const auto& commands = executor_.plan().commands;
    const bool in_place = std::any_of(program_.messages.begin(), program_.messages.end(), [&](std::int32_t command) {
      return commands[static_cast<std::size_t>(command)].verb == Verb::put;
    });
    if (!in_place) TASUKI_CUDA(cudaEventRecord, read_, beside_);
    messages(beside_);
    if (in_place) TASUKI_CUDA(cudaEventRecord, read_, beside_);
    launch(kPartUnpack, beside_);
    TASUKI_CUDA(cudaEventRecord, unpacked_, beside_);
  }

  // One group a path, in the order that all ranks have.
  void messages(Stream stream) {
    const Plan& plan = executor_.plan();
    for (std::size_t path = 0; path < plan.paths.size(); ++path) {
      Channel* first = nullptr;
      for (const auto command : program_.messages) {
        if (plan.commands[static_cast<std::size_t>(command)].path != static_cast<int>(path)) continue;
        Channel& channel = *executor_.program().channels[static_cast<std::size_t>(command)];
        if (channel.ended() != nullptr) continue;  // asked and waited for below
        if (first == nullptr) {
          first = &channel;
          first->begin_group();
        }
        channel.enqueue(stream);
      }
      if (first != nullptr) first->end_group();
    }
    if (program_.arrivals) launch(kPartArrive, stream);
  }

  void upload() {
    const auto round_up = [](std::size_t bytes) { return static_cast<std::int64_t>((bytes + 63) / 64 * 64); };
    const std::int64_t program = round_up(program_.bytes.size());
    const std::int64_t ends = round_up(executor_.plan().commands.size() * sizeof(std::uint64_t));
    const std::int64_t state = round_up(sizeof(State));
    const bool traced = executor_.recorder() != nullptr;
    const std::int64_t events = traced ? static_cast<std::int64_t>(kGpuEvents * sizeof(GpuEvent)) : 0;
    memory_ = {gpu()->allocate(program + ends + state + events), [](std::byte* m) { gpu()->release(m); }};
    gpu()->copy(memory_.get(), program_.bytes.data(), static_cast<std::int64_t>(program_.bytes.size()));
    launch_.bytes = memory_.get();
    launch_.ends = reinterpret_cast<std::uint64_t*>(memory_.get() + program);
    launch_.state = reinterpret_cast<State*>(memory_.get() + program + ends);
    if (traced) launch_.events = reinterpret_cast<GpuEvent*>(memory_.get() + program + ends + state);
    launch_.failure = failure_.get();
    launch_.abort = runtime_.gpus->abort_word();
    std::copy(std::begin(program_.blocks), std::end(program_.blocks), launch_.blocks);
  }

  // Passes on what the kernels have recorded, unless the GPU has failed: then there is worse to tell.
  void tell() noexcept {
    try {
      State state{};
      gpu()->copy(&state, launch_.state, sizeof state);
      const std::uint64_t kept = std::min<std::uint64_t>(state.recorded, kGpuEvents);
      std::vector<GpuEvent> events(kept);
      if (kept == 0) return;
      gpu()->copy(events.data(), launch_.events, static_cast<std::int64_t>(kept * sizeof(GpuEvent)));
      const std::int64_t offset = gpu_clock_offset(beside_);
      for (const GpuEvent& e : events) {
        executor_.recorder()->record_command(e.epoch, static_cast<std::int64_t>(e.begin) + offset,
                                             static_cast<std::int64_t>(e.end) + offset, e.command);
      }
    } catch (const Error&) {
    }
  }

  // Throws if a kernel has given up.
  void complain() {
    if (std::atomic_ref<std::uint32_t>(failure_->set).load() == 0) return;
    std::string text;
    for (std::size_t m = 0; m < program_.messages.size() && text.empty(); ++m) {
      text = executor_.program().channels[static_cast<std::size_t>(program_.messages[m])]->failure();
    }
    if (text.empty()) {
      text = describe_failure(executor_.plan(), runtime_, failure_->command, failure_->epoch, failure_->value,
                              failure_->target);
    }
    runtime_.fail(text);
    throw Error(text);
  }

  Executor& executor_;
  Runtime& runtime_;
  GpuProgram program_;
  std::shared_ptr<Failure> failure_;
  std::shared_ptr<std::byte> memory_;
  Launch launch_{};
  std::uint64_t epoch_ = 0;  // as far as the host knows
  bool started_ = false;
  bool replayed_ = false;  // part of a graph: the launches count themselves
  cudaEvent_t ended_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  cudaEvent_t read_ = nullptr;
  cudaEvent_t unpacked_ = nullptr;
  cudaStream_t beside_ = nullptr;
};

const EngineRegistration registration{"stream", false,
                                      [](Executor& executor, Runtime& runtime) -> std::unique_ptr<Engine> {
                                        return std::make_unique<StreamEngine>(executor, runtime);
                                      },
                                      Memory::device};

}  // namespace
}  // namespace tasuki
