// The kernel of engine `stream`, which runs a lowered plan (program.hpp): its arguments, and a block's share of a
// round. Only for stream.cu, which launches it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/program.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/interpret.cuh"

namespace tasuki {
namespace {

// Most bytes of a task that a block copies into its shared memory; a larger task is read from global memory.
constexpr std::uint32_t kShared = 24 << 10;

// What lasts from epoch to epoch, on the GPU. Each member has a cache line of its own.
struct State {
  alignas(128) unsigned long long recorded;  // events, if traced
  alignas(128) std::uint32_t failed;
};

// What every launch needs to know, and how it finds out which epoch it is.
struct Counting : PlanRun {
  unsigned long long* counts;  // by block: how many launches of these parts have counted themselves
  // The count of the first block of the twin parts, which may have been launched instead of these in earlier epochs, or
  // null.
  const unsigned long long* twin;
  // If kernels of the user run epochs too: how often their blocks, of which there are so many, have come to the
  // beginning and to the end of one. Null if they do not.
  const unsigned long long* begun;
  const unsigned long long* ended;
  unsigned long long kernel_blocks;
  std::uint64_t epoch;    // 0: this launch counts itself
  std::uint64_t counted;  // epochs before launches began to count themselves
};

struct Launch : Counting {
  GpuRound round[kGpuRounds];
  std::int32_t rounds;
  GpuTask tasks[kGpuTasks];
};

// All threads of a block that has kGpuThreads.
struct LaunchCrew {
  static constexpr bool kFresh = true;
  static constexpr bool kSignaller = true;
  __device__ static std::uint32_t thread() { return threadIdx.x; }
  __device__ static std::uint32_t warp() { return threadIdx.x / 32; }
  __device__ static constexpr std::uint32_t warps() { return kGpuWarps; }
  __device__ static bool all(bool yes) { return device::this_block().all(yes); }
  // Whether all warps but the last say yes.
  __device__ static bool movers(bool yes) {
    std::uint32_t all;
    __syncwarp();
    asm volatile(
        "{\n\t.reg .pred mine, every;\n\t"
        "setp.ne.u32 mine, %1, 0;\n\t"
        "barrier.cta.red.and.pred every, 1, %2, mine;\n\t"
        "selp.u32 %0, 1, 0, every;\n\t}"
        : "=r"(all)
        : "r"(yes ? 1u : 0u), "n"((kGpuWarps - 1) * 32)
        : "memory");
    return all != 0;
  }
  __device__ std::uint64_t elsewhere(const PlanRun&) const { return by_kernels; }

  const std::uint64_t& by_kernels;  // epochs that kernels of the user have run, with ends of their own
};

// The epoch of a launch that counts itself. Every block counts for itself, because with one counter for all the blocks
// would queue. The increment is atomic, so that the next kernel sees it however early it is launched.
__device__ std::uint64_t own_epoch(const Counting& l, std::uint64_t& by_kernels) {
  std::uint64_t mine = l.counted + atomicAdd(&l.counts[blockIdx.x], 1ull) + 1;
  if (l.twin != nullptr) mine += *static_cast<const volatile unsigned long long*>(l.twin);
  if (l.ended == nullptr) return mine;
  const unsigned long long begun = *static_cast<const volatile unsigned long long*>(l.begun);
  const unsigned long long ended = *static_cast<const volatile unsigned long long*>(l.ended);
  by_kernels = l.elsewhere + ended / l.kernel_blocks;
  mine += ended / l.kernel_blocks;
  if (begun != ended) give_up(l, Why::active, 0, mine + 1, 0, 0);
  return mine;
}

// This block's share of a round. All loads at its beginning are in flight together.
template <bool kReduces, bool kTraced>
__device__ void run_round(const Launch& l, const GpuRound& round, std::byte* fetched, const std::uint64_t& epoch,
                          const LaunchCrew& crew) {
  const auto me = static_cast<std::int32_t>(blockIdx.x);
  Steadily waits;
  if (me >= round.blocks || (me == 0 && !round.single)) return;
  const bool dead = failed(l);  // then nothing is touched any more, and the host gets to know
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
  if (!device::this_block().all(!dead)) return;
  const Task task{fits ? fetched : l.bytes + at.offset};
  if (t > round.first_task || !round.single) {
    LanePlace place;
    run_lane<kReduces, kTraced>(l, task, static_cast<std::uint32_t>(me - at.first_block),
                                static_cast<std::uint32_t>(end - at.first_block), epoch, crew, waits, place);
    return;
  }
  for (auto lane = static_cast<std::int32_t>(threadIdx.x); lane < task.header().lanes; lane += kGpuThreads) {
    std::int32_t step = first_step(task, lane);
    run_light_lane<kTraced>(l, task, lane, epoch, crew, waits, step);
  }
}

// With several rounds, or with one, which is some tenths of a microsecond faster.
template <bool kRounds, bool kReduces, bool kTraced>
__global__ void __launch_bounds__(kGpuThreads, 2) run_plan(const __grid_constant__ Launch l) {
  __shared__ alignas(16) std::byte fetched[kShared];
  __shared__ std::uint64_t shared_epoch;
  __shared__ std::uint64_t by_kernels;
  // The last warp does this, because it often has nothing to fetch.
  if (threadIdx.x == kGpuThreads - 1) {
    by_kernels = l.elsewhere;
    shared_epoch = l.epoch != 0 ? l.epoch : own_epoch(l, by_kernels);
  }
  const LaunchCrew crew{by_kernels};
  if constexpr (kRounds) {
#pragma unroll 1
    for (int round = 0; round < l.rounds; ++round) {
      if (round > 0) device::this_block().sync();  // all threads are done with the first round's task
      run_round<kReduces, kTraced>(l, l.round[round], fetched, shared_epoch, crew);
    }
  } else {
    run_round<kReduces, kTraced>(l, l.round[0], fetched, shared_epoch, crew);
  }
}

}  // namespace
}  // namespace tasuki
