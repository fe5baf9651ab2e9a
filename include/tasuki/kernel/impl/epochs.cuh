// How a block runs its part of an epoch of a handle. Part of tasuki/kernel.cuh; plan.cuh has the calls and says how the
// blocks of a group wait for each other.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/group_barrier.cuh"
#include "tasuki/kernel/impl/jobs.cuh"
#include "tasuki/kernel/impl/listed.cuh"
#include "tasuki/kernel/impl/shares.cuh"

namespace tasuki::device {

namespace lowered {

enum Part : int { kStartPart, kWaitPart, kRunPart, kPartsOfHandle };

/// Whether a plan only moves data, and in what the handle says which.
enum class OnlyMoves : int {
  no,
  listed,        ///< few
  barrier_free,  ///< likewise, and each block moves what its own threads write and read, without group barriers
  jobs,
};

}  // namespace lowered

/// Any persistent operation, as a small plain value that is passed to a kernel (with __grid_constant__ on a GPU, so
/// that nobody makes a copy of it). Its members are Tasuki's own. `kReduces`: of an operation that combines elements.
template <bool kReduces>
struct BasicHandle {
  Heading heading;
  lowered::PlanRun run;
  lowered::ListedMoves listed[lowered::kPartsOfHandle];   // if the plan only moves data, and not much of it,
  lowered::Jobs jobs[lowered::kPartsOfHandle];            // or more, or else:
  const lowered::Share* shares[lowered::kPartsOfHandle];  // by block, then its turns
  int turns[lowered::kPartsOfHandle];                     // tasks that a block has at most
  int working[lowered::kPartsOfHandle];                   // blocks that have something to do, the first ones
  lowered::OnlyMoves only_moves;
  int blocks;       // of the group
  int threads;      // of a block
  int in_rounds;    // run is start, then wait
  int copies;       // there are moves within the rank
  int alternating;  // copies take turns: in epoch e those after e - 1 - `swapped` swaps, modulo 2
  Word swapped;
  Word* begun;             // how often blocks of the group have come to the beginning of an epoch,
  Word* ended;             // and to the end
  Word* phases;            // by block: beginnings and ends that it has passed
  const Word* by_host[2];  // epochs that the host has begun,
  Word before;             // and those before it began to count in these
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

/// The block's number in the group; below 0 if the call cannot be.
template <bool kReduces>
TASUKI_DEVICE int block_in(const BasicHandle<kReduces>& h, const PlanRun& l, Members members) {
  if (!detail::same_version(h.heading)) return -1;
  const BlockGroup block = this_block();
  const int me = block.block() - members.first;
  if (members.count == h.blocks && block.threads() == h.threads && me >= 0 && me < h.blocks) return me;
  give_up(l, Why::group, -1, 0, static_cast<Word>(members.count), static_cast<Word>(block.threads()));
  return -1;
}

/// What a block's call looks up in memory before it begins.
struct Found {
  Word phases;  // that the block has passed
  Word by_host[2];
  std::uint32_t failed;
};
template <bool kReduces>
TASUKI_DEVICE Found look_up(const BasicHandle<kReduces>& h, int block) {
  return {own(h.phases + block), {own(h.by_host[0]), own(h.by_host[1])}, own(h.run.failed)};
}

/// The block's part of a call begins: finds out which epoch it is, and whether the call can be. `found` may be on its
/// way while the block comes.
template <bool kReduces>
TASUKI_DEVICE bool enter(const BasicHandle<kReduces>& h, const PlanRun& l, Word swaps, Part part, const Found& found,
                         Epoch& e) {
  const Word phase = part == kWaitPart ? 1 : 0;
  const Word passed = part == kStartPart ? 1 : 2;  // phases, when the call has ended
  const BlockGroup block = this_block();
  Word* const mine = h.phases + e.block;
  block.sync();  // what the block's threads have written is there
  const bool comes = block.thread() == 0 && phase == 0;
  const bool barrier_free = h.only_moves == OnlyMoves::barrier_free;
  if (comes && h.blocks > 1) {
    if (barrier_free) {
      detail::change_gpu(h.begun, 1);  // nobody waits for it
    } else {
      detail::change_release_gpu(h.begun, 1);
    }
  }
  const Word phases = found.phases;
  const Word epochs = phases / 2 + 1;  // of kernels
  if (comes && h.blocks == 1) set_own(h.begun, epochs);
  e.good = found.failed == 0;
  e.come = epochs * static_cast<Word>(h.blocks);
  e.elsewhere = h.before + found.by_host[0] + found.by_host[1];
  e.selection = swaps % 2 != 0 ? ~h.run.selection : h.run.selection;
  e.number = e.elsewhere + epochs;
  if (phases % 2 != phase) {
    give_up(l, phase == 0 ? Why::active : Why::idle, -1, e.number + 1, 0, 0);
    return false;
  }
  if (h.alternating != 0 && (e.number - 1 - h.swapped - swaps) % 2 != 0) {
    give_up(l, Why::turn, -1, e.number, swaps, 0);
    return false;
  }
  if (block.thread() == 0)
    set_own(mine, phases - phase + passed);  // a barrier of the block comes before they look again
  return true;
}

/// At the end: what has arrived may be read by all blocks. `shares`: how much of the group comes with this block.
template <bool kReduces>
TASUKI_DEVICE bool leave(const BasicHandle<kReduces>& h, const PlanRun& l, const Epoch& e, bool good, int shares) {
  const BlockGroup block = this_block();
  if (h.only_moves == OnlyMoves::barrier_free && h.blocks > 1) {
    if (block.thread() == 0) detail::change_gpu(h.ended, 1);
    return block.all(good);
  }
  if (h.blocks == 1) {
    if (block.thread() == 0) arrive(h.ended, e.come, 1, 1);
    return block.all(good);
  }
  if (shares > 0) {
    good = block.all(good);
    if (block.thread() == 0 && good) arrive(h.ended, e.come, static_cast<Word>(shares), h.blocks);
  }
  return wait_for_all(l, h.ended, e.come, e.number, good);
}

/// What this block does of a part, if it is listed and if it is not. `prepare()` is called before a barrier of the
/// block, `run` after it. `begin()` returns when the block may begin, and says whether nothing is wrong. `idle()`: of a
/// block that has nothing to do. `kInRounds`: a run may be start, then wait.
struct ListedWork {
  static constexpr bool kInRounds = false;

  template <bool kReduces>
  TASUKI_DEVICE ListedTurns prepare(const BasicHandle<kReduces>& h, int block, Part part) const {
    const Crew crew{this_block()};
    const int from = block < h.working[part] ? block : 0;
    return {h.listed[part], static_cast<std::int64_t>(from) * crew.warps() + crew.warp()};
  }
  template <bool kReduces, class Begin>
  TASUKI_DEVICE bool run(const ListedTurns& turns, const BasicHandle<kReduces>&, const PlanRun& l, const Epoch& e, Part,
                         const Begin& begin) const {
    return begin() && turns.run(l, e.selection, e.number, true, [] {});
  }
  TASUKI_DEVICE bool idle() const { return true; }
};

/// Likewise in a barrier-free group, and `beside()` by the last warp, which has no moves if the block has other warps.
/// When it is called, what the block copies within the rank is there.
template <class Beside>
struct BarrierFreeWork : ListedWork {
  const Beside& beside;
  TASUKI_DEVICE explicit BarrierFreeWork(const Beside& that) : beside(that) {}

  template <bool kReduces, class Begin>
  TASUKI_DEVICE bool run(const ListedTurns& turns, const BasicHandle<kReduces>& h, const PlanRun& l, const Epoch& e,
                         Part, const Begin&) const {
    const Crew crew{this_block()};
    const auto copied = [&] {
      if (h.copies != 0) this_block().sync();
    };
    if (crew.warps() > 1 && crew.warp() + 1 == crew.warps()) {
      copied();
      return beside() && e.good;
    }
    const bool good = turns.run(l, e.selection, e.number, e.good, copied);
    return crew.warps() > 1 ? good : beside() && good;
  }
  TASUKI_DEVICE bool idle() const {
    const Crew crew{this_block()};
    return crew.warp() + 1 < crew.warps() || beside();
  }
};
struct UnlistedWork {
  static constexpr bool kInRounds = true;
  struct Unprepared {};

  template <bool kReduces>
  TASUKI_DEVICE Unprepared prepare(const BasicHandle<kReduces>&, int, Part) const {
    return {};
  }
  TASUKI_DEVICE bool idle() const { return true; }
  template <bool kReduces, class Begin>
  TASUKI_DEVICE bool run(Unprepared, const BasicHandle<kReduces>& h, const PlanRun& l, const Epoch& e, Part part,
                         const Begin& begin) const {
    const bool good = begin();
    if (h.only_moves == OnlyMoves::jobs)
      return run_jobs(l, e.selection, Crew{this_block()}, h.jobs[part], e.block, e.number, good);
    PlanRun run = l;
    run.elsewhere = e.elsewhere;
    run.selection = e.selection;
    return good && run_shares<kReduces>(run, h.shares[part] + static_cast<std::int64_t>(e.block) * h.turns[part],
                                        h.turns[part], e.number);
  }
};

/// What this block does of a part. `barrier`: first waits until all blocks have begun, so that what they have written
/// before is there. Threads may differ in what they find.
template <class Work, class Prepared, bool kReduces>
TASUKI_DEVICE bool work(const Work& how, const Prepared& prepared, const BasicHandle<kReduces>& h, const PlanRun& l,
                        const Epoch& e, Part part, bool barrier) {
  if (e.block >= h.working[part]) return how.idle() && e.good;
  return how.run(prepared, h, l, e, part, [&] {
    if (h.blocks == 1 || h.only_moves == OnlyMoves::barrier_free) return e.good;
    return barrier ? wait_for_all(l, h.begun, e.come, e.number, e.good) : this_block().all(e.good);
  });
}

/// A call: start, wait or run. `l`: the handle's run, for those who need its address.
template <class Work, bool kReduces>
TASUKI_WITHIN bool call_here(const Work& how, const BasicHandle<kReduces>& h, const PlanRun& l, Members members,
                             Word swaps, Part part) {
  Epoch e;
  e.block = block_in(h, l, members);
  if (e.block < 0) return false;
  const auto prepared = how.prepare(h, e.block, part);
  if (!enter(h, l, swaps, part, look_up(h, e.block), e)) return false;
  const int working = h.working[part];
  if (part == kRunPart && working == 0 && h.blocks > 1 &&
      h.only_moves != OnlyMoves::barrier_free) {  // the beginning is all
    if (e.block == 0 && this_block().thread() == 0) arrive(h.ended, e.come, h.blocks, h.blocks);
    return wait_for_all(l, h.begun, e.come, e.number, e.good);
  }
  const bool has_waited = part != kStartPart && e.block < h.working[kStartPart];  // at the start
  bool good = true;
  if (Work::kInRounds && part == kRunPart && h.in_rounds != 0) {
    good = this_block().all(work(how, prepared, h, l, e, kStartPart, true));
    good = good && work(how, prepared, h, l, e, kWaitPart, !has_waited);
  } else {
    good = work(how, prepared, h, l, e, part, part != kWaitPart || !has_waited);
  }
  if (part == kStartPart) return this_block().all(good);
  const int idle = h.blocks - working;  // in a run they come with the first one
  const int shares = part == kWaitPart ? 1 : e.block == 0 ? idle + 1 : e.block < working ? 1 : 0;
  return leave(h, l, e, good, shares);
}

/// One code for all such calls of a kernel: inlined into each it would take registers from what the user computes. It
/// has no kernel parameters, only their address, and so takes what it needs of the handle before it begins: a load
/// would be slow each time, for every group barrier empties the L1 cache.
template <Part kPart, bool kReduces>
TASUKI_NOINLINE bool call_unlisted(const BasicHandle<kReduces>& handle, Members members, Word swaps) {
  const BasicHandle<kReduces> h = handle;
  return call_here(UnlistedWork(), h, handle.run, members, swaps, kPart);
}

/// What is listed takes few registers and has no calls, across which others would have to be kept in memory.
template <Part kPart, bool kReduces, class Group>
TASUKI_DEVICE bool call_listed(const BasicHandle<kReduces>& h, const Group& group, Word swaps) {
  return call_here(ListedWork(), h, h.run, members_of(group), swaps, kPart);
}

template <Part kPart, bool kReduces, class Group>
TASUKI_DEVICE bool call(const BasicHandle<kReduces>& h, const Group& group, Word swaps) {
  if (h.only_moves == OnlyMoves::listed || h.only_moves == OnlyMoves::barrier_free)
    return call_listed<kPart>(h, group, swaps);
  return call_unlisted<kPart>(h, members_of(group), swaps);
}

/// The same in a barrier-free group, and `beside()` by the block's last warp when what the block's threads have
/// written before is there.
template <Part kPart, bool kReduces, class Group, class Beside>
TASUKI_DEVICE bool call_beside(const BasicHandle<kReduces>& h, const Group& group, Word swaps, const Beside& beside) {
  return call_here(BarrierFreeWork<Beside>(beside), h, h.run, members_of(group), swaps, kPart);
}

}  // namespace lowered

}  // namespace tasuki::device
