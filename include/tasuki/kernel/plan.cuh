// Handles: a kernel starts and finishes any persistent operation by itself, with the plan and the protocols by which
// the host runs it. Part of tasuki/kernel.cuh. A handle is made by Operation::device (tasuki/operation.hpp).
//
// A group of blocks runs an epoch together: all threads of all its blocks call start and wait, or run, with equal
// arguments. The group is the one for which the handle was made: so many blocks of so many threads.
//
// Every call returns false once something has failed on this rank: a wait that came to its deadline, an abort by the
// host, a group that does not fit. The first failure is kept, and the host throws it.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/interpret.cuh"

namespace tasuki::device {

/// Some blocks of the launch that run operations together.
class BlocksGroup {
 public:
  TASUKI_DEVICE BlocksGroup(int first, int count) : first_(first), count_(count) {}
  TASUKI_DEVICE int first() const { return first_; }
  TASUKI_DEVICE int blocks() const { return count_; }
  TASUKI_DEVICE bool has_this_block() const {
    const int me = this_block().block();
    return me >= first_ && me < first_ + count_;
  }

 private:
  int first_;
  int count_;
};

/// Blocks `first` to `first + count - 1` of the launch. Only they call what takes the group.
TASUKI_DEVICE BlocksGroup blocks(int first, int count) {
  return {first, count};
}

namespace lowered {

enum Part : int { kStartPart, kWaitPart, kRunPart, kPartsOfHandle };

/// What a block does of a part: its share of a task.
struct Share {
  std::uint32_t offset;  // of the task's bytes
  std::uint32_t block;   // among those of the task
  std::uint32_t blocks;  // of the task; 0: there is nothing more to do
  std::uint32_t light;   // a task of single threads
};

}  // namespace lowered

/// Any persistent operation, as a small plain value that is passed to a kernel (with __grid_constant__ on a GPU, so
/// that nobody makes a copy of it). Its members are Tasuki's own. `kReduces`: of an operation that combines elements.
template <bool kReduces>
struct BasicHandle {
  lowered::PlanRun run;
  const lowered::Share* shares[lowered::kPartsOfHandle];  // by block, then its turns
  int turns[lowered::kPartsOfHandle];                     // tasks that a block has at most
  int blocks;                                             // of the group
  int threads;                                            // of a block
  int in_rounds;                                          // run is start, then wait
  int alternating;  // copies take turns: in epoch e those after e - 1 - `swapped` swaps, modulo 2
  Word swapped;
  Word* met;               // how often blocks of the group have come to the beginning or to the end of an epoch
  const Word* by_host[2];  // epochs that the host has begun,
  Word before;             // and those before it began to count in these
  Word id;
};

using Handle = BasicHandle<false>;
using ReducingHandle = BasicHandle<true>;

namespace lowered {

/// The caller's place in the group.
template <class Block>
struct GroupCrew {
#if defined(__CUDACC__)
  static constexpr bool kFresh = true;  // `tell_all` has told what was before
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
};
using Crew = GroupCrew<BlockGroup>;

/// Which blocks of the launch make up a group.
struct Members {
  int first;
  int count;
};
TASUKI_DEVICE Members members_of(const BlockGroup& group) {
  return {group.block(), 1};
}
TASUKI_DEVICE Members members_of(const BlocksGroup& group) {
  return {group.first(), group.blocks()};
}
TASUKI_DEVICE Members members_of(const GridGroup&) {
  return {0, this_block().blocks()};
}

/// An epoch as one block sees it.
struct Epoch {
  PlanRun run;
  Word number;
  Word met;  // when all blocks of the group have come
  int block;
};

#if defined(__CUDACC__)
constexpr int kLightLanes = 8;  // of a thread, if a block has 32: see kGpuThreads
#else
constexpr int kLightLanes = 256;
#endif

/// By all threads that run lanes which move nothing: what comes before the call is seen by whoever sees what they
/// signal then. On a GPU a fence of all threads together takes as long as that of one, and releases one by one take
/// their sum.
TASUKI_DEVICE void tell_all() {
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
  TASUKI_DEVICE bool go_on(const PlanRun& l, std::uint64_t epoch, const Crew& crew, InTurns& waits, Went& went) {
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
TASUKI_APART Went run_share(const PlanRun& l, const Share& share, std::uint64_t epoch, InTurns& waits,
                            LanePlace& place) {
  return run_lane<kReduces, false>(l, Task{l.bytes + share.offset}, share.block, share.blocks, epoch,
                                   Crew{this_block()}, waits, place);
}

/// A block's tasks in turns: as far as each can go, again and again. So it does not matter in which order what they
/// wait for comes.
template <bool kReduces>
TASUKI_APART bool run_in_turns(const PlanRun& l, const Share* shares, int turns, std::uint64_t epoch) {
  const Crew crew{this_block()};
  const Share* const light = shares[0].light != 0 ? &shares[0] : nullptr;
  if (light != nullptr) tell_all();
  LightLanes lanes(Task{l.bytes + shares[0].offset}, crew);
  std::int16_t at[kGpuTasks];  // of each task the step; -1: it has ended. Few bytes, for every thread has its own
  std::uint8_t dealt[kGpuTasks];
  for (int n = 0; n < turns; ++n) at[n] = dealt[n] = 0;
  bool lanes_ended = light == nullptr;
  const std::int32_t none = -1;
  Patience patience(l, none, epoch);
  InTurns waits{};
  for (bool left = true; left;) {
    left = false;
    Went went = Went::to_its_end;
    waits.in_vain = false;
    if (!lanes_ended) lanes_ended = lanes.go_on(l, epoch, crew, waits, went);
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
    if (good && waits.in_vain) good = patience.more_for(waits.command, waits.value, waits.target);
    if (!crew.all(good)) return false;
    if (!crew.all(lanes_ended)) left = true;
  }
  return true;
}

/// A block's share of a task that is all it does. Threads may differ in what they find.
template <bool kReduces>
TASUKI_APART bool run_alone(const PlanRun& l, const Share& share, std::uint64_t epoch) {
  const BlockGroup block = this_block();
  InTurns waits{true};
  if (share.light == 0) {
    LanePlace place;
    return run_share<kReduces>(l, share, epoch, waits, place) == Went::to_its_end;
  }
  tell_all();
  const Task task{l.bytes + share.offset};
  const std::int32_t lane = block.thread();
  if (lane >= task.header().lanes) return true;
  std::int32_t step = first_step(task, lane);
  return run_light_lane<false>(l, task, lane, epoch, Crew{block}, waits, step) == Went::to_its_end;
}

/// What this block does of a part. Threads may differ in what they find.
template <bool kReduces>
TASUKI_DEVICE bool run_part(const BasicHandle<kReduces>& h, const Epoch& e, Part part) {
  const int turns = h.turns[part];
  const Share* const shares = h.shares[part] + static_cast<std::int64_t>(e.block) * turns;
  const Share first = shares[0];
  if (first.blocks == 0) return true;
  const bool alone = turns == 1 || shares[1].blocks == 0;
  if (!alone || (first.light != 0 && Task{e.run.bytes + first.offset}.header().lanes > this_block().threads()))
    return run_in_turns<kReduces>(e.run, shares, turns, e.number);
  return run_alone<kReduces>(e.run, first, e.number);
}

TASUKI_DEVICE Word look_at(const Word* p) {
  return detail::load_relaxed(p);
}

/// All blocks of the group meet: what they have written before may be read by all after. By thread 0.
TASUKI_DEVICE bool meet(const Epoch& e, Word* met, int blocks) {
  if (blocks == 1) {
    detail::store_relaxed(met, e.met);
    return true;
  }
  if (detail::add_gpu(met, 1) + 1 == e.met) return true;
  const std::int32_t none = -1;
  Patience patience(e.run, none, e.number, Why::meeting);
  for (;;) {
    const Word come = detail::load_acquire_gpu(met);
    if (come >= e.met) return true;
    if (!patience.more(come, e.met)) return false;
  }
}

/// The block's part of a call begins: finds out which epoch it is, and whether the call can be. `phase`: 0 at a start,
/// 1 at a wait.
template <bool kReduces, class Group>
TASUKI_DEVICE bool enter(const BasicHandle<kReduces>& h, const Group& group, Word swaps, Word phase, Epoch& e) {
  const Crew crew{this_block()};
  const Members members = members_of(group);
  const Word met = look_at(h.met);
  const Word by_host = look_at(h.by_host[0]) + look_at(h.by_host[1]);
  bool good = !failed(h.run);
  e.run = h.run;
  e.block = crew.group.block() - members.first;
  const Word of_group = static_cast<Word>(h.blocks);
  const Word phases = met / of_group;  // all blocks have come to so many
  e.number = h.before + by_host + (phases + 2 - phase) / 2;
  e.met = (phases + 1) * of_group;
  e.run.elsewhere = e.number - (phases + 2 - phase) / 2;
  if (swaps % 2 != 0) e.run.selection = ~e.run.selection;
  if (members.count != h.blocks || crew.group.threads() != h.threads || e.block < 0 || e.block >= h.blocks) {
    give_up(h.run, Why::group, -1, 0, static_cast<Word>(members.count), static_cast<Word>(crew.group.threads()));
    good = false;
  } else if (phases % 2 != phase) {
    give_up(h.run, phase == 0 ? Why::active : Why::idle, -1, e.number + 1, 0, 0);
    good = false;
  } else if (h.alternating != 0 && (e.number - 1 - h.swapped - swaps) % 2 != 0) {
    give_up(h.run, Why::turn, -1, e.number, swaps, 0);
    good = false;
  }
  return crew.all(good);  // the block's threads meet: what they have written is there
}

/// Before anything is sent: what all blocks have written is there. The threads of the block have met already.
template <bool kReduces>
TASUKI_DEVICE bool all_have_come(const BasicHandle<kReduces>& h, const Epoch& e) {
  const BlockGroup block = this_block();
  bool good = true;
  if (block.thread() == 0) good = meet(e, h.met, h.blocks);
  return h.blocks == 1 || block.all(good);
}

/// At the end: what has arrived may be read by all blocks.
template <bool kReduces>
TASUKI_DEVICE bool leave(const BasicHandle<kReduces>& h, const Epoch& e, bool good) {
  const BlockGroup block = this_block();
  if (h.blocks > 1 && !block.all(good)) return false;
  if (block.thread() == 0) good = meet(e, h.met, h.blocks) && good;
  return block.all(good);
}

}  // namespace lowered

/// Begins the next epoch, as Operation::start does on the host: permits the peers to write, and sends what leaves this
/// rank, with what the group's threads have written before. It must not change before `wait`. `swaps`: how often the
/// kernel has swapped the operation's fields with two copies since the handle was made.
template <bool kReduces, class Group>
TASUKI_DEVICE bool start(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 0, e) || !lowered::all_have_come(handle, e)) return false;
  return this_block().all(lowered::run_part(handle, e, lowered::kStartPart));
}

/// Returns when the epoch that `start` began has ended on this rank: what has arrived may be read by all threads of the
/// group, and what was sent may change. `swaps` as at the start.
template <bool kReduces, class Group>
TASUKI_DEVICE bool wait(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 1, e)) return false;
  return lowered::leave(handle, e, lowered::run_part(handle, e, lowered::kWaitPart));
}

/// `start`, then `wait`; quicker than both.
template <bool kReduces, class Group>
TASUKI_DEVICE bool run(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 0, e) || !lowered::all_have_come(handle, e)) return false;
  bool good = true;
  if (handle.in_rounds == 0) {
    good = lowered::run_part(handle, e, lowered::kRunPart);
  } else {
    good = this_block().all(lowered::run_part(handle, e, lowered::kStartPart)) &&
           lowered::run_part(handle, e, lowered::kWaitPart);
  }
  e.met += static_cast<Word>(handle.blocks);
  return lowered::leave(handle, e, good);
}

/// True if something has failed on this rank: every call returns false then.
template <bool kReduces>
TASUKI_DEVICE bool failed(const BasicHandle<kReduces>& handle) {
  return lowered::failed(handle.run);
}

}  // namespace tasuki::device
