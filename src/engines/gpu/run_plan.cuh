// The kernel that runs a lowered plan (program.hpp): its arguments, how its threads wait and signal, how its blocks
// share the work. Only for stream.cu, which launches it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/clock.cuh"
#include "engines/gpu/copy.cuh"
#include "engines/gpu/lines.cuh"
#include "engines/gpu/program.hpp"
#include "engines/gpu/reduce.cuh"
#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

constexpr unsigned kPollsPerLook = 256;  // polls between two looks at the clock and at the abort word
// Most bytes of a task that a block copies into its shared memory; a larger task is read from global memory.
constexpr std::uint32_t kShared = 24 << 10;

// What lasts from epoch to epoch, on the GPU. Each member has a cache line of its own.
struct State {
  alignas(128) unsigned long long recorded;  // events, if traced
  alignas(128) std::uint32_t failed;
};

// Where a wait that gives up leaves the reason; in host memory.
struct Failure {
  std::uint32_t set;
  std::int32_t command;
  std::uint64_t epoch;
  std::uint64_t value;
  std::uint64_t target;
};

struct Launch {
  const std::byte* bytes;
  std::uint64_t* ends;  // of steps, by GpuStep::end: dependencies wait for these
  State* state;
  unsigned long long* counts;  // by block: how many launches of these parts have counted themselves
  // The count of the first block of the twin parts, which may have been launched instead of these in earlier epochs, or
  // null.
  const unsigned long long* twin;
  Failure* failure;
  const std::uint32_t* abort;
  GpuEvent* events;         // if traced
  std::uint64_t epoch;      // 0: this launch counts itself
  std::uint64_t counted;    // epochs before launches began to count themselves
  std::uint64_t selection;  // bit p: number of the current copy of field p of those with two copies
  std::uint64_t patience;   // ns
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

// For stores with nothing to release: a release takes more than a microsecond even then.
__device__ void store_relaxed(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
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

// How long a thread goes on polling for `command`, or for its end.
class Patience {
 public:
  __device__ Patience(const Launch& l, const std::int32_t& command, std::uint64_t epoch)
      : l_(l), command_(command), epoch_(epoch) {}

  // Called after a poll that found `value` instead of `target`. False when the thread must give up: the deadline has
  // passed, the host has told it, or another thread has given up.
  __device__ bool more(std::uint64_t value, std::uint64_t target) {
    if (begin_ == 0) begin_ = now_ns();
    if (++polls_ % kPollsPerLook != 0) return true;
    if (failed(l_)) return false;
    const bool told = *static_cast<const volatile std::uint32_t*>(l_.abort) != 0;
    if (!told && now_ns() - begin_ < l_.patience) return true;
    if (atomicExch(&l_.state->failed, 1u) == 0) {
      l_.failure->command = command_;
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
  const std::int32_t& command_;  // a reference needs no register of its own
  std::uint64_t epoch_;
  std::uint64_t begin_ = 0;
  unsigned polls_ = 0;
};

// Polls until the counter has reached `target`. False if the thread gave up.
__device__ bool await(const Launch& l, const std::uint64_t* counter, std::uint64_t target, const std::int32_t& command,
                      std::uint64_t epoch) {
  Patience patience(l, command, epoch);
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
  if (place.takes_turns != 0) copy = (copy + epoch - 1) & (place.copies - 1);
  return place.base + static_cast<std::int64_t>(copy) * place.stride;
}

// A task, read through its header, in shared or in global memory.
struct Task {
  const std::byte* at;
  __device__ const GpuTaskHeader& header() const { return *reinterpret_cast<const GpuTaskHeader*>(at); }
  template <class T>
  __device__ const T* list(std::int32_t offset) const {
    return reinterpret_cast<const T*>(at + offset);
  }
  // Number of strided copies of a step and its followers.
  __device__ int copies_of(const GpuStep& step) const {
    const GpuStep& last = (&step)[step.followers];
    return last.first_copy + last.copies - step.first_copy;
  }
};

template <class Patient>
__device__ bool move_lines(const GpuStep& step, const GpuLines& tile, std::uint32_t rows, std::uint32_t stamp,
                           const Patient& patient) {
  const bool few = rows == 1;
  if (step.stamped == kStampedSource) {
    return few ? take_lines<1>(tile, stamp, patient) : take_lines<kTileRows>(tile, stamp, patient);
  }
  if (few) {
    fill_lines<1>(tile, stamp);
  } else {
    fill_lines<kTileRows>(tile, stamp);
  }
  return true;
}

// Finds the strided copy to which a tile belongs. By the whole warp, each thread looks at one copy.
__device__ int copy_of(const GpuCopy* copies, int count, std::uint32_t tile) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int first = 0;; first += 32) {
    const bool before = first + lane < count && copies[first + lane].first_tile <= tile;
    const int found = __popc(__ballot_sync(~0u, before));
    if (found < 32 || first + 32 >= count) return first + found - 1;
  }
}

// The tiles of a step and its followers that are dealt to one block. They are neighbours, so that an SM touches few
// pages of memory at a time.
struct Dealt {
  const GpuStep& step;
  std::uint32_t block;
  std::uint32_t blocks;

  // The first of the block's tiles of those that are left after the rounds; `rest_count` is their number.
  __device__ std::uint32_t rest() const {
    return (step.rounds * kGpuWarps) * blocks + turn() * step.share + min(turn(), step.more);
  }
  __device__ std::uint32_t rest_count() const { return step.share + (turn() < step.more ? 1 : 0); }

 private:
  __device__ std::uint32_t turn() const {
    return block >= step.first_block ? block - step.first_block : block + blocks - step.first_block;
  }
};

// Not inlined: the code for all elements and operators would take registers from the copies.
__device__ __noinline__ bool reduce(const Launch& l, const Task& task, const GpuStep& step, const GpuCopy& copy,
                                    std::uint32_t first, std::uint32_t rows, std::uint64_t epoch) {
  const GpuCopy* copies = task.list<GpuCopy>(task.header().copies);
  const GpuDim* dims = task.list<GpuDim>(task.header().dims);
  const auto operand = [&](int k) {
    const GpuStep& its = (&step)[k];
    const GpuCopy& its_copy = k == 0 ? copy : copies[its.first_copy];
    return Operand{its_copy, dims + its_copy.first_dim, base_of(l, its.src, epoch), its.stamped == kStampedSource};
  };
  Patience patience(l, step.command, epoch);
  const auto patient = [&] { return patience.more((epoch - 1) * kSignal, epoch * kSignal); };
  return combine_tile(Combination{step.dtype, step.op, step.begins != 0, step.joined}, step.by_lines != 0, first, rows,
                      base_of(l, step.dst, epoch), operand, static_cast<std::uint32_t>(epoch), patient);
}

// Moves the tiles dealt to this warp, and of the rest the tile number `turn`. A kernel without reductions does not even
// contain the call, which alone would cost registers. False if something that was to be moved has not arrived.
template <bool kReduces>
__device__ bool move(const Launch& l, const Task& task, const Dealt& dealt, std::uint64_t epoch, std::uint32_t turn) {
  const GpuStep* steps = task.list<GpuStep>(task.header().steps);
  const GpuDim* all_dims = task.list<GpuDim>(task.header().dims);
  const GpuCopy* copies = task.list<GpuCopy>(task.header().copies) + dealt.step.first_copy;
  const int count = task.copies_of(dealt.step);
  const auto stamp = static_cast<std::uint32_t>(epoch);
  for (std::uint32_t round = 0; round <= dealt.step.rounds; ++round) {
    std::uint32_t tile = (round * dealt.blocks + dealt.block) * kGpuWarps + threadIdx.x / 32;
    if (round == dealt.step.rounds) {
      if (turn >= dealt.rest_count()) break;
      tile = dealt.rest() + turn;
    }
    const GpuCopy& copy = copies[copy_of(copies, count, tile)];
    const GpuStep& step = steps[copy.step];
    const GpuDim* dims = all_dims + copy.first_dim;
    const std::uint32_t rows = dealt.step.tile_rows;
    const std::uint32_t first = (tile - copy.first_tile) * rows;
    if constexpr (kReduces) {
      if (step.verb == Verb::reduce) {
        if (__all_sync(~0u, reduce(l, task, step, copy, first, rows, epoch)) == 0) return false;
        continue;
      }
    }
    const std::byte* src = base_of(l, step.src, epoch);
    std::byte* dst = base_of(l, step.dst, epoch);
    Patience patience(l, step.command, epoch);
    const auto patient = [&] { return patience.more((epoch - 1) * kSignal, epoch * kSignal); };
    if (step.stamped != 0) {
      const std::uint32_t lines = (copy.units + kLineWords - 1) / kLineWords;
      const GpuLines t{copy, dims, first, min(rows, lines - first), src, dst};
      if (!move_lines(step, t, rows, stamp, patient)) return false;
      continue;
    }
    const GpuTile t{
        copy, dims, first * copy.row_units + threadIdx.x % 32, min(copy.units, (first + rows) * copy.row_units),
        src,  dst};
    move_units(t, rows);
  }
  return true;
}

__device__ bool deps_ended(const Launch& l, const Task& task, const GpuStep& step, std::uint64_t epoch) {
  const auto* deps = task.list<std::int32_t>(task.header().deps) + step.first_dep;
  for (std::int32_t d = 0; d < step.deps; ++d) {
    if (!await(l, &l.ends[deps[d]], epoch * kSignal, deps[d], epoch)) return false;
  }
  return true;
}

// Adds this block's share to a signal. All stores of its threads come before, for they have met at a barrier.
__device__ void give(std::uint64_t* counter, std::uint64_t value, std::uint32_t block, std::uint32_t blocks) {
  if (blocks == 1) {
    store_release(counter, value);
  } else {
    add_release(counter, block == 0 ? kSignal - blocks + 1 : 1);
  }
}

// Runs a lane that moves data, with all threads of `blocks` blocks.
template <bool kReduces, bool kTraced>
__device__ void run_lane(const Launch& l, const Task& task, std::uint32_t block, std::uint32_t blocks,
                         std::uint64_t epoch) {
  const auto& header = task.header();
  const auto* steps = task.list<GpuStep>(header.steps);
  const std::int32_t count = *task.list<std::int32_t>(header.ends);
  // of this warp: of the rest of a step it gets this tile; the next step goes on with the next warp
  std::uint32_t turn = threadIdx.x / 32;
  bool came = true;  // everything that this thread has waited for
  for (std::int32_t s = 0; s < count; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? now_ns() : 0;
    const bool watched = kTraced && block == 0 && threadIdx.x == 0;
    if (step.deps > 0 || step.verb == Verb::wait) {
      if (threadIdx.x == 0) {
        came = came && deps_ended(l, task, step, epoch) &&
               (step.verb != Verb::wait || await(l, step.counter, target_of(step, epoch), step.command, epoch));
      }
      if (__syncthreads_and(came) == 0) return;
    }
    if (step.tiles > 0 && came) {
      const Dealt dealt{step, block, blocks};
      came = move<kReduces>(l, task, dealt, epoch, turn);
      if (step.keeps_turn == 0) turn = (turn - dealt.rest_count()) % kGpuWarps;
    }
    if (step.verb == Verb::signal || step.verb == Verb::reduce || step.awaited != 0) {
      if (__syncthreads_and(came) == 0) return;
      if (threadIdx.x == 0 && step.verb == Verb::signal) give(step.counter, target_of(step, epoch), block, blocks);
      if (threadIdx.x == 0 && step.awaited == kAwaited) give(&l.ends[step.end], epoch * kSignal, block, blocks);
      if (threadIdx.x == 0 && step.awaited == kMet) store_relaxed(&l.ends[step.end], epoch * kSignal);
    }
    const std::int32_t last = s + step.followers + step.joined;
    for (std::int32_t k = s; watched && came && k <= last; ++k) record(l, steps[k], epoch, begin);
    s = last;
  }
}

// Runs a lane that moves nothing, with one thread.
template <bool kTraced>
__device__ void run_light_lane(const Launch& l, const Task& task, std::int32_t lane, std::uint64_t epoch) {
  const auto& header = task.header();
  const auto* ends = task.list<std::int32_t>(header.ends);
  const auto* steps = task.list<GpuStep>(header.steps);
  for (std::int32_t s = lane == 0 ? 0 : ends[lane - 1]; s < ends[lane]; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? now_ns() : 0;
    if (!deps_ended(l, task, step, epoch)) return;
    if (step.verb == Verb::wait && !await(l, step.counter, target_of(step, epoch), step.command, epoch)) return;
    if (step.verb == Verb::signal) {
      const std::uint64_t target = target_of(step, epoch);
      if (step.alone != 0) {
        store_relaxed(step.counter, target);
      } else {
        store_release(step.counter, target);
      }
    }
    if (step.awaited != 0) store_release(&l.ends[step.end], epoch * kSignal);
    if (kTraced && step.untold == 0) record(l, step, epoch, begin);
  }
}

// The epoch of a launch that counts itself. Every block counts for itself, because with one counter for all the blocks
// would queue. The increment is atomic, so that the next kernel sees it however early it is launched.
__device__ std::uint64_t own_epoch(const Launch& l) {
  const std::uint64_t mine = l.counted + atomicAdd(&l.counts[blockIdx.x], 1ull) + 1;
  return l.twin == nullptr ? mine : mine + *static_cast<const volatile unsigned long long*>(l.twin);
}

// This block's share of a round. All loads at its beginning are in flight together.
template <bool kReduces, bool kTraced>
__device__ void run_round(const Launch& l, const GpuRound& round, std::byte* fetched, const std::uint64_t& epoch) {
  const auto me = static_cast<std::int32_t>(blockIdx.x);
  if (me >= round.blocks) return;
  const bool dead = failed(l);  // then nothing is touched any more, and the host is told
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
  // The kernel was launched early: until here it may read nothing that earlier work of the stream may still write.
  // `failed` and `counts` are exceptions: a block of this operation writes them before it ends.
  wait_for_stream();
  if (__syncthreads_or(dead)) return;
  const Task task{fits ? fetched : l.bytes + at.offset};
  if (t > round.first_task) {
    run_lane<kReduces, kTraced>(l, task, static_cast<std::uint32_t>(me - at.first_block),
                                static_cast<std::uint32_t>(end - at.first_block), epoch);
    return;
  }
  for (auto lane = static_cast<std::int32_t>(threadIdx.x); lane < task.header().lanes; lane += kGpuThreads) {
    run_light_lane<kTraced>(l, task, lane, epoch);
  }
}

// With two rounds, or with one, which is some tenths of a microsecond faster.
template <bool kRounds, bool kReduces, bool kTraced>
__global__ void __launch_bounds__(kGpuThreads, 2) run_plan(const __grid_constant__ Launch l) {
  __shared__ alignas(16) std::byte fetched[kShared];
  __shared__ std::uint64_t shared_epoch;
  // The last warp does this, because it often has nothing to fetch.
  if (threadIdx.x == kGpuThreads - 1) shared_epoch = l.epoch != 0 ? l.epoch : own_epoch(l);
  if constexpr (kRounds) {
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
      if (round > 0) __syncthreads();  // all threads are done with the first round's task
      run_round<kReduces, kTraced>(l, l.round[round], fetched, shared_epoch);
    }
  } else {
    run_round<kReduces, kTraced>(l, l.round[0], fetched, shared_epoch);
  }
}

}  // namespace
}  // namespace tasuki
