// Shares: which parts of a lowered plan's tasks (program.cuh) a block of a user's kernel runs, one task alone or
// several in turns. Part of tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/interpret.cuh"
#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device::lowered {

/// What a block does of a part: its share of a task.
struct Share {
  std::uint32_t offset;  // of the task's bytes
  std::uint32_t block;   // among those of the task
  std::uint32_t blocks;  // of the task; 0: there is nothing more to do
  std::uint32_t light;   // a task of single threads
};

/// The caller's place in the group.
template <class Block>
struct GroupCrew {
  static constexpr bool kSignaller = false;
#if defined(__CUDACC__)
  static constexpr bool kFresh = true;  // `release_all` has released what was before
#else
  static constexpr bool kFresh = false;
#endif
  Block group;
  TASUKI_DEVICE std::uint32_t thread() const {
    return static_cast<std::uint32_t>(group.thread());
  }
#if defined(__CUDACC__)
  TASUKI_DEVICE std::uint32_t warp() const {
    return thread() / kLanes;
  }
  TASUKI_DEVICE std::uint32_t warps() const {
    return static_cast<std::uint32_t>(group.threads()) / kLanes;
  }
#else
  TASUKI_DEVICE std::uint32_t warp() const {
    return thread();
  }
  TASUKI_DEVICE std::uint32_t warps() const {
    return static_cast<std::uint32_t>(group.threads());
  }
#endif
  TASUKI_DEVICE bool all(bool yes) const {
    return group.all(yes);
  }
  TASUKI_DEVICE static std::uint64_t elsewhere(const PlanRun& l) {
    return l.elsewhere;
  }
};
using Crew = GroupCrew<BlockGroup>;

#if defined(__CUDACC__)
constexpr int kLightLanes = 8;  // of a thread, if a block has 32: see kGpuThreads
#else
constexpr int kLightLanes = 256;
#endif

/// By all threads that run lanes which move nothing. Whoever sees a later signal of theirs sees what came before this
/// call. On a GPU one fence by all threads at once takes as long as a fence by one thread, while releases one after the
/// other take the sum.
TASUKI_DEVICE void release_all() {
  detail::fence();
}

/// Lanes that move nothing, of a task that has more of them than the block has threads, or beside other tasks.
class LightLanes {
 public:
  TASUKI_DEVICE LightLanes(const Task& task, const Crew& crew) : task_(task) {
    int n = 0;
    for (int lane = first(crew); lane < lanes(); lane += step(crew)) at_[n++] = first_step(task, lane);
  }
  /// True if all of this thread's lanes have ended; `went` is wrong if one never will.
  TASUKI_DEVICE bool proceed(const PlanRun& l, std::uint64_t epoch, const Crew& crew, InTurns& waits, Went& went) {
    bool ended = true;
    int n = 0;
    for (int lane = first(crew); lane < lanes(); lane += step(crew), ++n) {
      const Went lane_went = run_light_lane<false>(l, task_, lane, epoch, crew, waits, at_[n]);
      if (lane_went != Went::to_its_end) ended = false;
      if (lane_went == Went::wrong) went = Went::wrong;
    }
    return ended;
  }

 private:
  TASUKI_DEVICE int lanes() const { return task_.header().lanes; }
  TASUKI_DEVICE static int first(const Crew& crew) { return static_cast<int>(crew.thread()); }
  TASUKI_DEVICE static int step(const Crew& crew) { return crew.group.threads(); }
  Task task_;
  std::int32_t at_[kLightLanes];
};

/// One code for all calls of a kernel: inlined into each it would take registers from what the user computes.
template <bool kReduces>
TASUKI_NOINLINE Went run_share(const PlanRun& l, const Share& share, std::uint64_t epoch, InTurns& waits,
                               LanePlace& place) {
  return run_lane<kReduces, false>(l, Task{l.bytes + share.offset}, share.block, share.blocks, epoch,
                                   Crew{this_block()}, waits, place);
}

/// A block's tasks in turns: as far as each can go, again and again. So it does not matter in which order what they
/// wait for comes.
template <bool kReduces>
TASUKI_NOINLINE bool run_in_turns(const PlanRun& l, const Share* shares, int turns, std::uint64_t epoch) {
  const Crew crew{this_block()};
  const Share* const light = shares[0].light != 0 ? &shares[0] : nullptr;
  if (light != nullptr) release_all();
  LightLanes lanes(Task{l.bytes + shares[0].offset}, crew);
  std::int16_t at[kGpuTasks];  // of each task the step; -1: it has ended. Few bytes, for every thread has its own
  std::uint8_t dealt[kGpuTasks];
  for (int n = 0; n < turns; ++n) at[n] = dealt[n] = 0;
  bool lanes_ended = light == nullptr;
  const std::int32_t none = -1;
  Deadline deadline(l, none, epoch);
  InTurns waits{};
  for (bool left = true; left;) {
    left = false;
    Went went = Went::to_its_end;
    waits.in_vain = false;
    if (!lanes_ended) lanes_ended = lanes.proceed(l, epoch, crew, waits, went);
    for (int n = light != nullptr ? 1 : 0; n < turns && shares[n].blocks != 0; ++n) {
      if (at[n] < 0) continue;
      LanePlace place{at[n], dealt[n]};
      const Went task_went = run_share<kReduces>(l, shares[n], epoch, waits, place);
      if (task_went == Went::as_far_as_it_could) {
        at[n] = static_cast<std::int16_t>(place.step);
        dealt[n] = static_cast<std::uint8_t>(place.dealt);
        left = true;
        continue;
      }
      at[n] = -1;
      if (task_went == Went::wrong) went = Went::wrong;
    }
    bool good = went != Went::wrong;
    if (good && waits.in_vain) good = deadline.more_for(waits.command, waits.value, waits.target);
    if (!crew.all(good)) return false;
    if (!crew.all(lanes_ended)) left = true;
  }
  return true;
}

/// A block's share of a task that is all it does. Threads may differ in what they find.
template <bool kReduces>
TASUKI_NOINLINE bool run_alone(const PlanRun& l, const Share& share, std::uint64_t epoch) {
  const BlockGroup block = this_block();
  InTurns waits{true};
  if (share.light == 0) {
    LanePlace place;
    return run_share<kReduces>(l, share, epoch, waits, place) == Went::to_its_end;
  }
  release_all();
  const Task task{l.bytes + share.offset};
  const std::int32_t lane = block.thread();
  if (lane >= task.header().lanes) return true;
  std::int32_t step = first_step(task, lane);
  return run_light_lane<false>(l, task, lane, epoch, Crew{block}, waits, step) == Went::to_its_end;
}

/// What a block does of a part: its shares, of which there are `turns` at most. Threads may differ in what they find.
template <bool kReduces>
TASUKI_DEVICE bool run_shares(const PlanRun& l, const Share* shares, int turns, std::uint64_t epoch) {
  const Share first = shares[0];
  if (first.blocks == 0) return true;
  const bool alone = turns == 1 || shares[1].blocks == 0;
  if (!alone || (first.light != 0 && Task{l.bytes + first.offset}.header().lanes > this_block().threads()))
    return run_in_turns<kReduces>(l, shares, turns, epoch);
  return run_alone<kReduces>(l, first, epoch);
}

}  // namespace tasuki::device::lowered
