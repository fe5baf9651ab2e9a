// Handles: a kernel starts and finishes any persistent operation by itself, with the plan and the protocols by which
// the host runs it. Part of tasuki/kernel.cuh. A handle is made by Operation::device (tasuki/operation.hpp).
//
// A group of blocks runs an epoch together: all threads of all its blocks call start and wait, or run, with equal
// arguments. The group is the one for which the handle was made: so many blocks of so many threads.
//
// The blocks meet twice in an epoch. When a block comes to the beginning, what its threads have written may be sent; it
// waits there for the others only if it has something to do. At the end those come that have done something (in `wait`
// all, for the user may have computed since `start`), and all wait. Where nothing is to be done, `run` is one meeting.
// A word for each block counts what it has passed: thus it knows the epoch without the others.
//
// Neither meeting can go as long as nobody says which blocks write and read which cells:
//   * Before the first, another block may not have written yet what this one sends, or may still read the cells that
//     this one overwrites with what arrives. Lines with numbers (lines.cuh) order both between ranks, but not between
//     the user's own loads and stores, which have no numbers.
//   * Before the last, another block may not have stored yet what has arrived, which this one's threads read next, or
//     may still read what it sends, which they overwrite next.
// A kernel that knows which blocks these are lets a smaller group run the operation, and its other blocks wait for
// their neighbours (steps.cuh). A group of one block needs neither.
//
// Every call returns false once something has failed on this rank: a wait that came to its deadline, an abort by the
// host, a group that does not fit. The first failure is kept, and the host throws it.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/jobs.cuh"
#include "tasuki/kernel/meeting.cuh"
#include "tasuki/kernel/shares.cuh"

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

}  // namespace lowered

/// Any persistent operation, as a small plain value that is passed to a kernel (with __grid_constant__ on a GPU, so
/// that nobody makes a copy of it). Its members are Tasuki's own. `kReduces`: of an operation that combines elements.
template <bool kReduces>
struct BasicHandle {
  Heading heading;
  lowered::PlanRun run;
  lowered::Jobs jobs[lowered::kPartsOfHandle];            // if the plan only moves data, else:
  const lowered::Share* shares[lowered::kPartsOfHandle];  // by block, then its turns
  int turns[lowered::kPartsOfHandle];                     // tasks that a block has at most
  int working[lowered::kPartsOfHandle];                   // blocks that have something to do, the first ones
  int only_moves;                                         // it has jobs
  int blocks;                                             // of the group
  int threads;                                            // of a block
  int in_rounds;                                          // run is start, then wait
  int alternating;  // copies take turns: in epoch e those after e - 1 - `swapped` swaps, modulo 2
  Word swapped;
  Word* begun;             // how often blocks of the group have come to the beginning of an epoch,
  Word* ended;             // and to the end
  Word* phases;            // by block: beginnings and ends that it has passed
  const Word* by_host[2];  // epochs that the host has begun,
  Word before;             // and those before it began to count in these
  Word id;
};

using Handle = BasicHandle<false>;
using ReducingHandle = BasicHandle<true>;

namespace lowered {

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
  Word number;
  Word elsewhere;  // as PlanRun has them
  Word selection;
  Word come;  // to its beginning and to its end, when all blocks have
  int block;
  bool good;  // nothing has failed before; threads may differ
};

/// The block's part of a call begins: finds out which epoch it is, and whether the call can be. `phase`: 0 at a start,
/// 1 at a wait. `passed`: phases that the block has passed when the call has ended.
template <bool kReduces, class Group>
TASUKI_DEVICE bool enter(const BasicHandle<kReduces>& h, const Group& group, Word swaps, Word phase, Word passed,
                         Epoch& e) {
  if (!detail::same_version(h.heading)) return false;
  const BlockGroup block = this_block();
  const Members members = members_of(group);
  e.block = block.block() - members.first;
  if (members.count != h.blocks || block.threads() != h.threads || e.block < 0 || e.block >= h.blocks) {
    give_up(h.run, Why::group, -1, 0, static_cast<Word>(members.count), static_cast<Word>(block.threads()));
    return false;
  }
  Word* const mine = h.phases + e.block;
  const Word phases = own(mine);
  const Word by_host = own(h.by_host[0]) + own(h.by_host[1]);
  e.good = own(h.run.failed) == 0;
  block.sync();                        // what the block's threads have written is there
  const Word epochs = phases / 2 + 1;  // of kernels
  e.come = epochs * static_cast<Word>(h.blocks);
  if (block.thread() == 0 && phase == 0) come(h.begun, e.come, 1, h.blocks);
  e.elsewhere = h.before + by_host;
  e.selection = swaps % 2 != 0 ? ~h.run.selection : h.run.selection;
  e.number = e.elsewhere + epochs;
  if (phases % 2 != phase) {
    give_up(h.run, phase == 0 ? Why::active : Why::idle, -1, e.number + 1, 0, 0);
    return false;
  }
  if (h.alternating != 0 && (e.number - 1 - h.swapped - swaps) % 2 != 0) {
    give_up(h.run, Why::turn, -1, e.number, swaps, 0);
    return false;
  }
  if (block.thread() == 0) set_own(mine, phases - phase + passed);  // the threads meet before they look again
  return true;
}

/// What this block does of a part. `meets`: what all blocks have written before they began is there first. Threads may
/// differ in what they find.
template <bool kReduces>
TASUKI_DEVICE bool work(const BasicHandle<kReduces>& h, const Epoch& e, Part part, bool meets) {
  if (e.block >= h.working[part]) return e.good;
  bool good = e.good;
  const Word* begun = nullptr;
  if (h.blocks > 1) {
    if (meets) {
      begun = h.begun;
    } else {
      good = this_block().all(good);
    }
  }
  if (h.only_moves != 0)
    return run_jobs(h.run, e.selection, Crew{this_block()}, h.jobs[part], e.block, e.number, begun, e.come, good);
  if (begun != nullptr) good = all_have_come(h.run, begun, e.come, e.number, good);
  PlanRun run = h.run;
  run.elsewhere = e.elsewhere;
  run.selection = e.selection;
  return good && run_shares<kReduces>(run, h.shares[part] + static_cast<std::int64_t>(e.block) * h.turns[part],
                                      h.turns[part], e.number);
}

/// At the end: what has arrived may be read by all blocks. `shares`: how much of the group comes with this block.
template <bool kReduces>
TASUKI_DEVICE bool leave(const BasicHandle<kReduces>& h, const Epoch& e, bool good, int shares) {
  const BlockGroup block = this_block();
  if (h.blocks == 1) {
    if (block.thread() == 0) come(h.ended, e.come, 1, 1);
    return block.all(good);
  }
  if (shares > 0) {
    good = block.all(good);
    if (block.thread() == 0 && good) come(h.ended, e.come, static_cast<Word>(shares), h.blocks);
  }
  return all_have_come(h.run, h.ended, e.come, e.number, good);
}

}  // namespace lowered

/// Begins the next epoch, as Operation::start does on the host: permits the peers to write, and sends what leaves this
/// rank, with what the group's threads have written before. It must not change before `wait`. `swaps`: how often the
/// kernel has swapped the operation's fields with two copies since the handle was made.
template <bool kReduces, class Group>
TASUKI_DEVICE bool start(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 0, 1, e)) return false;
  return this_block().all(lowered::work(handle, e, lowered::kStartPart, true));
}

/// Returns when the epoch that `start` began has ended on this rank: what has arrived may be read by all threads of the
/// group, and what was sent may change. `swaps` as at the start.
template <bool kReduces, class Group>
TASUKI_DEVICE bool wait(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 1, 2, e)) return false;
  const bool has_met = e.block < handle.working[lowered::kStartPart];
  return lowered::leave(handle, e, lowered::work(handle, e, lowered::kWaitPart, !has_met), 1);
}

/// `start`, then `wait`; quicker than both.
template <bool kReduces, class Group>
TASUKI_DEVICE bool run(const BasicHandle<kReduces>& handle, const Group& group, Word swaps = 0) {
  lowered::Epoch e;
  if (!lowered::enter(handle, group, swaps, 0, 2, e)) return false;
  const int working = handle.working[lowered::kRunPart];
  if (working == 0 && handle.blocks > 1) {  // the beginning is all
    if (e.block == 0 && this_block().thread() == 0) lowered::come(handle.ended, e.come, handle.blocks, handle.blocks);
    return lowered::all_have_come(handle.run, handle.begun, e.come, e.number, e.good);
  }
  bool good = true;
  if (handle.in_rounds == 0) {
    good = lowered::work(handle, e, lowered::kRunPart, true);
  } else {
    const bool has_met = e.block < handle.working[lowered::kStartPart];
    good = this_block().all(lowered::work(handle, e, lowered::kStartPart, true));
    good = good && lowered::work(handle, e, lowered::kWaitPart, !has_met);
  }
  const int idle = handle.blocks - working;  // they come with the first one
  return lowered::leave(handle, e, good, e.block == 0 ? idle + 1 : e.block < working ? 1 : 0);
}

/// True if something has failed on this rank: every call returns false then.
template <bool kReduces>
TASUKI_DEVICE bool failed(const BasicHandle<kReduces>& handle) {
  return !detail::same_version(handle.heading) || lowered::failed(handle.run);
}

}  // namespace tasuki::device
