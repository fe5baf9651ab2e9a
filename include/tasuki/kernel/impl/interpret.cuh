// How threads run a lowered plan (program.cuh): how they wait and signal, how blocks share the work. Part of
// tasuki/kernel.cuh. The GPU's engine runs plans by it in kernels of its own (src/engines/gpu/launch.cuh), and a user's
// kernel in the midst of others' work (plan.cuh).
//
// A crew describes the block that runs a task: which of its threads the caller is (`thread()`, `warp()`, of `warps()`),
// the block's barrier (`all(yes)`: whether all threads say yes), whether earlier kernels have ended when it begins
// (`kFresh`), and whether its last warp may only signal (`kSignaller`; then the other warps have a barrier of their
// own, `movers(yes)`).
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/copy.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/reduce.cuh"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/turn.cuh"
#include "tasuki/kernel/impl/warp.cuh"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/impl/lines.cuh"
#endif

namespace tasuki::device::lowered {

using detail::add_release;
using detail::load_acquire;
using detail::store_relaxed;
using detail::store_release;

#if defined(__CUDACC__)

// Not `load_relaxed`, whose assembly keeps the compiler from moving other loads across it.
TASUKI_DEVICE std::uint32_t look(const std::uint32_t* p) {
  return *static_cast<const volatile std::uint32_t*>(p);
}
// Not `exchange_gpu`, which is an acquire and a release: what the first thread stores next has a fence of its own.
TASUKI_DEVICE bool take_first(std::uint32_t* p) {
  return atomicExch(p, 1u) == 0;
}

#else

inline std::uint32_t look(const std::uint32_t* p) {
  return detail::load_relaxed(p);
}
inline bool take_first(std::uint32_t* p) {
  return std::atomic_ref<std::uint32_t>(*p).exchange(1, std::memory_order_relaxed) == 0;
}

#endif

TASUKI_DEVICE bool failed(const PlanRun& l) {
  return look(l.failed) != 0;
}

/// Keeps the reason for the host, if it is the first of this run.
TASUKI_DEVICE void give_up(const PlanRun& l, Why why, std::int32_t command, std::uint64_t epoch, std::uint64_t value,
                           std::uint64_t target) {
  if (!take_first(l.failed)) return;
  l.failure->command = command;
  l.failure->epoch = epoch;
  l.failure->value = value;
  l.failure->target = target;
  l.failure->why = why;
  l.failure->block = this_block().block();
  detail::fence();
  store_release(&l.failure->set, 1);
}

#if defined(__CUDACC__)
TASUKI_DEVICE void record(const PlanRun& l, const GpuStep& step, std::uint64_t epoch, std::uint64_t begin) {
  const auto at = atomicAdd(l.recorded, 1ull);
  l.events[at % kGpuEvents] = {epoch, begin, detail::now_ns(), step.command, 0};
}
#else
inline void record(const PlanRun&, const GpuStep&, std::uint64_t, std::uint64_t) {}
#endif

/// How long a thread polls for `command`, or for its end. Not the Deadline of team_memory.cuh: that one reads a clock
/// after every poll, while here thousands of threads wait at once, which only count their polls.
class Deadline {
 public:
  TASUKI_DEVICE Deadline(const PlanRun& l, const std::int32_t& command, std::uint64_t epoch, Why why = Why::waited)
      : l_(l), command_(command), epoch_(epoch), why_(why) {}

  /// Called after a poll that found `value` instead of `target`. False when the thread must give up: the deadline has
  /// passed, the host has ended all waits, or another thread has given up.
  TASUKI_DEVICE bool more(std::uint64_t value, std::uint64_t target) { return more_for(command_, value, target); }
  /// The same for the command that is waited for now.
  TASUKI_DEVICE bool more_for(std::int32_t command, std::uint64_t value, std::uint64_t target) {
#if !defined(__CUDACC__)
    if (polls_ > kSpins) std::this_thread::yield();
#endif
    if (++polls_ % kPollsPerLook != 0) return true;
    if (failed(l_)) return false;
    const std::uint64_t time = detail::now_ns();
    if (begin_ == 0) begin_ = time;
#if !defined(__CUDACC__)
    detail::skip_pause(begin_, last_, time);
#endif
    const bool aborted = detail::stop_requested(l_.stop, time);
    // A block that waits for one which waits for another rank leaves it the time to say so first.
    const std::uint64_t more = why_ == Why::group_barrier ? l_.deadline / 16 : 0;
    if (!aborted && time - begin_ < l_.deadline + more) return true;
    give_up(l_, aborted ? Why::aborted : why_, command, epoch_, value, target);
    return false;
  }

 private:
#if defined(__CUDACC__)
  // Polls between two looks at the clock and at what ends all waits, some 0.7 ms. A GPU reads this clock for one warp
  // after the other: a thousand warps that each read it when they began to wait would take tens of microseconds.
  static constexpr unsigned kPollsPerLook = 1024;
#else
  static constexpr unsigned kSpins = 50;
  static constexpr unsigned kPollsPerLook = 8;  // each may take a time slice of another thread
  std::uint64_t last_ = 0;
#endif
  const PlanRun& l_;
  const std::int32_t& command_;  // a reference needs no register of its own
  std::uint64_t epoch_;
  std::uint64_t begin_ = 0;
  unsigned polls_ = 0;
  Why why_;
};

/// What a look at a counter finds.
enum class Came : int { yes, not_yet, never };
/// How far a block has gone in a task.
enum class Went : int { to_its_end, as_far_as_it_could, wrong };

/// Waits for each counter as long as it takes.
struct Steadily {
  static constexpr bool kLeaves = false;
  TASUKI_DEVICE Came await(const PlanRun& l, const std::uint64_t* counter, std::uint64_t target,
                           const std::int32_t& command, std::uint64_t epoch) {
    Deadline deadline(l, command, epoch);
    for (;;) {
      const std::uint64_t value = load_acquire(counter);
      if (value >= target) return Came::yes;
      if (!deadline.more(value, target)) return Came::never;
    }
  }
};

/// Looks at a counter once, so that a block with several tasks can turn to another one. With `steady`, for a block with
/// one task, it waits as long as it takes.
struct InTurns {
  static constexpr bool kLeaves = true;
  bool steady;
  std::int32_t command = 0;  // what was looked for in vain
  std::uint64_t value = 0;
  std::uint64_t target = 0;
  bool in_vain = false;
  TASUKI_DEVICE Came await(const PlanRun& l, const std::uint64_t* counter, std::uint64_t wanted,
                           const std::int32_t& who, std::uint64_t epoch) {
    if (steady) return Steadily().await(l, counter, wanted, who, epoch);
    const std::uint64_t found = load_acquire(counter);
    if (found >= wanted) return Came::yes;
    command = who;
    value = found;
    target = wanted;
    in_vain = true;
    return Came::not_yet;
  }
};

/// Where a block is in a task.
struct LanePlace {
  std::int32_t step = 0;
  std::uint32_t dealt = 0;  // tiles of rests, modulo the warps: the next step continues with the next warp
};

/// `step`: a GpuStep, or what has its numbers of signals.
template <class Step>
TASUKI_DEVICE std::uint64_t target_of(const Step& step, std::uint64_t epoch) {
  if (step.verb == Verb::wait) {
    if (epoch > step.lag) {
      epoch -= step.lag;
    } else if (step.credit != 0) {
      return 0;
    } else {
      epoch = 1;
    }
  }
  return ((epoch - 1) * step.per_epoch + step.index + 1) * kWholeSignal;
}

/// `selection`: as PlanRun has it. Without branches: a warp computes it for every few hundred bytes that it moves.
TASUKI_DEVICE std::byte* base_of(std::uint64_t selection, const GpuPlace& place, std::uint64_t epoch) {
#if defined(__CUDACC__)
  const std::uint32_t turn = place.takes_turns != 0 ? static_cast<std::uint32_t>(epoch) - 1
                                                    : static_cast<std::uint32_t>(selection >> (place.pair & 63));
  std::byte* const at = place.base + static_cast<std::int64_t>(turn & (place.copies - 1)) * place.stride;
  __builtin_assume(__isGlobal(at));  // each load would look for shared memory first
  return at;
#else
  const std::uint64_t turn = place.takes_turns != 0 ? epoch - 1 : selection >> (place.pair & 63);
  return place.base + static_cast<std::int64_t>(turn % place.copies) * place.stride;
#endif
}
TASUKI_DEVICE std::byte* base_of(const PlanRun& l, const GpuPlace& place, std::uint64_t epoch) {
  return base_of(l.selection, place, epoch);
}

// A task, read through its header, in shared or in global memory.
struct Task {
  const std::byte* at;
  TASUKI_DEVICE const GpuTaskHeader& header() const { return *reinterpret_cast<const GpuTaskHeader*>(at); }
  template <class T>
  TASUKI_DEVICE const T* list(std::int32_t offset) const {
    return reinterpret_cast<const T*>(at + offset);
  }
  // Number of strided copies of a step and its followers.
  TASUKI_DEVICE int copies_of(const GpuStep& step) const {
    const GpuStep& last = (&step)[step.followers];
    return last.first_copy + last.copies - step.first_copy;
  }
};

#if defined(TASUKI_LANES_ARE_THREADS)
template <class More>
TASUKI_DEVICE bool move_lines(const GpuStep& step, const GpuLines& tile, std::uint32_t rows, std::uint32_t flag,
                              const More& more) {
  const bool few = rows == 1;
  if (step.ll_side == kLLSource) {
    return few ? unpack_lines<1>(tile, flag, more) : unpack_lines<kTileRows>(tile, flag, more);
  }
  if (few) {
    fill_lines<1>(tile, flag);
  } else {
    fill_lines<kTileRows>(tile, flag);
  }
  return true;
}
#endif

// Finds the strided copy to which a tile belongs. By the whole warp, each lane looks at one copy: of up to 32 copies at
// all, of more at one in `each`, and again within what follows it. One after the other, 32 at a time, a list of 2,000
// cells took each warp 60 loads that wait for each other.
TASUKI_DEVICE std::int32_t copy_of(const GpuCopy* copies, std::int32_t count, std::uint32_t tile) {
  constexpr auto kAtOnce = static_cast<std::int32_t>(kLanes);
  std::int32_t first = 0;
  for (;;) {
    const std::int32_t each = (count + kAtOnce - 1) / kAtOnce;
    const auto found = static_cast<std::int32_t>(count_lanes([&](std::uint32_t lane) {
      const std::int32_t at = static_cast<std::int32_t>(lane) * each;
      return at < count && copies[first + at].first_tile <= tile;
    }));
    first += (found - 1) * each;
    if (each == 1) return first;
    count = each < count - (found - 1) * each ? each : count - (found - 1) * each;
  }
}

// The tiles of a step and its followers that one block gets. They are neighbours, so that an SM touches few pages of
// memory at a time.
struct Dealt {
  const GpuStep& step;
  std::uint32_t block;
  std::uint32_t blocks;
  std::uint32_t warps;  // of a block

  // The first of the block's tiles of those that are left after the rounds; `rest_count` is their number.
  TASUKI_DEVICE std::uint32_t rest() const {
    return (step.rounds * warps) * blocks + turn() * step.share + least(turn(), step.more);
  }
  TASUKI_DEVICE std::uint32_t rest_count() const { return step.share + (turn() < step.more ? 1 : 0); }

 private:
  TASUKI_DEVICE std::uint32_t turn() const {
    return block >= step.first_block ? block - step.first_block : block + blocks - step.first_block;
  }
};

// All tiles of a flat reduction that are dealt to this warp, as `move` counts them. What does not change from tile to
// tile is looked up once.
template <class Add, class Step>
TASUKI_NOINLINE void reduce_flat_by(const PlanRun& l, const std::byte* at, const Step* step, const Dealt& dealt,
                                    std::uint32_t warp, std::uint32_t turn, std::uint64_t epoch) {
  const Task task{at};
  const GpuCopy* copies = task.list<GpuCopy>(task.header().copies);
  const GpuCopy& copy = copies[step->first_copy];
  const auto source = [&](int k) -> const std::byte* {
    return base_of(l, step[k].src, epoch) + copies[step[k].first_copy].src_offset;
  };
  std::byte* const to = base_of(l, step->dst, epoch) + copy.dst_offset;
  const bool begins = step->begins != 0;
  const std::byte* const here = begins ? source(0) : to;
  const std::byte* const there = begins ? source(1) : source(0);
  const int first_more = begins ? 2 : 1;
  const GpuStep* const put = step + step->joined;
  std::byte* const also = step->sends != 0 ? base_of(l, put->dst, epoch) + copies[put->first_copy].dst_offset : nullptr;
  const int rest = step->joined + 1 - step->sends - first_more;
  const auto more = [&](int k) { return source(first_more + k); };
  const Add add{step->dtype, step->op};
  const std::uint32_t tile_units = step->tile_rows * 32;
  const std::uint32_t units = copy.units;
  const std::uint32_t rounds = step->rounds;
  const std::uint32_t stride = dealt.blocks * dealt.warps;
  std::uint32_t tile = dealt.block * dealt.warps + warp;
  TASUKI_NO_UNROLL
  for (std::uint32_t round = 0; round <= rounds; ++round, tile += stride) {
    if (round == rounds) {
      if (turn >= dealt.rest_count()) break;
      tile = dealt.rest() + turn;
    }
    const std::uint32_t first = tile * tile_units;
    each_lane([&](std::uint32_t lane) {
      combine_flat(add, first + lane, least(units, first + tile_units), here, there, to, also, rest, more);
    });
  }
}

// Not inlined: the code for all types and operators would take registers from the copies. Its arguments fit into
// registers, and only rare operators keep anything in local memory. A template, so that a kernel without reductions
// does not compile it.
template <class Add, class Step>
TASUKI_NOINLINE bool reduce_by(const PlanRun& l, const std::byte* at, const Step* step, const GpuCopy* copy,
                               std::uint32_t first, std::uint32_t rows, std::uint64_t epoch) {
  const Task task{at};
  const GpuCopy* copies = task.list<GpuCopy>(task.header().copies);
  const GpuDim* dims = task.list<GpuDim>(task.header().dims);
  const auto operand = [&](int k) {
    const Step& its = step[k];
    const GpuCopy& its_copy = k == 0 ? *copy : copies[its.first_copy];
    return Operand{its_copy, dims + its_copy.first_dim, base_of(l, its.src, epoch), its.ll_side == kLLSource};
  };
  Deadline deadline(l, step->command, epoch);
  const auto more = [&] { return deadline.more((epoch - 1) * kShares, epoch * kShares); };
  const Combination c{step->dtype, step->op, step->begins != 0, step->joined - step->sends, step->sends};
  const auto forward_to = [&](int k) {
    const Step& put = step[c.more + 1 + k];
    return base_of(l, put.dst, epoch) + copies[put.first_copy].dst_offset;
  };
  return combine_tile(c, Add{c.type, c.op}, step->by_lines != 0, first, rows, base_of(l, step->dst, epoch), operand,
                      forward_to, static_cast<std::uint32_t>(epoch), more);
}

// What is called with an adder: not lambdas with `auto`, which NVRTC before 13.2 takes for functions of the host.
template <class Step>
struct ReduceBy {
  const PlanRun& l;
  const std::byte* at;
  const Step* step;
  const GpuCopy* copy;
  std::uint32_t first;
  std::uint32_t rows;
  std::uint64_t epoch;
  template <class Add>
  TASUKI_WITHIN bool operator()(Add) const {
    return reduce_by<Add>(l, at, step, copy, first, rows, epoch);
  }
};
struct ReduceFlatBy {
  const PlanRun& l;
  const std::byte* at;
  const Dealt& dealt;
  std::uint32_t warp;
  std::uint32_t turn;
  std::uint64_t epoch;
  template <class Add>
  TASUKI_WITHIN bool operator()(Add) const {
    reduce_flat_by<Add>(l, at, &dealt.step, dealt, warp, turn, epoch);
    return true;
  }
};

template <class Step>
TASUKI_WITHIN bool reduce(const PlanRun& l, const Task& task, const Step& step, const GpuCopy& copy,
                          std::uint32_t first, std::uint32_t rows, std::uint64_t epoch) {
  return with_adder(step.dtype, step.op, ReduceBy<Step>{l, task.at, &step, &copy, first, rows, epoch});
}

// Moves the tiles of this warp, and of the rest the tile number `turn`. A kernel without reductions does not contain
// the call of `reduce`, which alone would cost registers. False if something that was to be moved has not arrived.
template <bool kReduces>
TASUKI_DEVICE bool move(const PlanRun& l, const Task& task, const Dealt& dealt, std::uint64_t epoch, std::uint32_t warp,
                        std::uint32_t turn) {
  const GpuStep* steps = task.list<GpuStep>(task.header().steps);
  const GpuDim* all_dims = task.list<GpuDim>(task.header().dims);
  const GpuCopy* copies = task.list<GpuCopy>(task.header().copies) + dealt.step.first_copy;
  const std::int32_t count = task.copies_of(dealt.step);
  if constexpr (kReduces) {
    if (dealt.step.flat != 0) {
      return with_adder(dealt.step.dtype, dealt.step.op, ReduceFlatBy{l, task.at, dealt, warp, turn, epoch});
    }
  }
  for (std::uint32_t round = 0; round <= dealt.step.rounds; ++round) {
    std::uint32_t tile = (round * dealt.blocks + dealt.block) * dealt.warps + warp;
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
        if (!reduce(l, task, step, copy, first, rows, epoch)) return false;
        continue;
      }
    }
    const std::byte* src = base_of(l, step.src, epoch);
    std::byte* dst = base_of(l, step.dst, epoch);
    if (copy.turned != 0) {
      turn_tile(copy, dims, tile - copy.first_tile, src, dst);
      continue;
    }
#if defined(TASUKI_LANES_ARE_THREADS)
    Deadline deadline(l, step.command, epoch);
    const auto more = [&] { return deadline.more((epoch - 1) * kShares, epoch * kShares); };
    if (step.ll_side != 0) {
      const auto flag = static_cast<std::uint32_t>(epoch);
      const std::uint32_t lines = (copy.units + kLineWords - 1) / kLineWords;
      const GpuLines t{copy, dims, first, least(rows, lines - first), src, dst};
      if (!move_lines(step, t, rows, flag, more)) return false;
      continue;
    }
#endif
    each_lane([&](std::uint32_t lane) {
      const GpuTile t{copy, dims, first * copy.row_units + lane, least(copy.units, (first + rows) * copy.row_units),
                      src,  dst};
      move_units(t, rows);
    });
  }
  return true;
}

template <class Crew, class Waits>
TASUKI_DEVICE Came deps_ended(const PlanRun& l, const Task& task, const GpuStep& step, std::uint64_t epoch,
                              const Crew& crew, Waits& waits) {
  const auto* deps = task.list<std::int32_t>(task.header().deps) + step.first_dep;
  for (std::int32_t d = 0; d < step.deps; ++d) {
    const Came came = waits.await(l, &l.ends[deps[d]], (epoch - crew.elsewhere(l)) * kShares, deps[d], epoch);
    if (came != Came::yes) return came;
  }
  return Came::yes;
}

// What a step waits for, if anything: first of its own process, then of others.
template <class Crew, class Waits>
TASUKI_DEVICE Came what_it_needs(const PlanRun& l, const Task& task, const GpuStep& step, std::uint64_t epoch,
                                 const Crew& crew, Waits& waits) {
  const Came came = deps_ended(l, task, step, epoch, crew, waits);
  if (came != Came::yes || step.verb != Verb::wait) return came;
  return waits.await(l, step.counter, target_of(step, epoch), step.command, epoch);
}

// Adds this block's share to a signal or an end. All stores of its threads come before, because a barrier of the block
// has.
TASUKI_DEVICE void give(std::uint64_t* counter, std::uint64_t value, std::uint32_t block, std::uint32_t blocks) {
  if (blocks == 1) {
    store_release(counter, value);
  } else {
    add_release(counter, block == 0 ? kShares - blocks + 1 : 1);
  }
}

/// Runs a lane that moves data, with all threads of `blocks` blocks, from `place` on. Threads of a block may differ in
/// the result, but not in whether the block leaves the lane early. A warp that only signals (GpuTaskHeader::signaller)
/// takes part in barriers of the whole block only.
template <bool kReduces, bool kTraced, class Crew, class Waits>
TASUKI_DEVICE Went run_lane(const PlanRun& l, const Task& task, std::uint32_t block, std::uint32_t blocks,
                            std::uint64_t epoch, const Crew& crew, Waits& waits, LanePlace& place) {
  const auto& header = task.header();
  const auto* steps = task.list<GpuStep>(header.steps);
  const std::int32_t count = *task.list<std::int32_t>(header.ends);
  bool signaller = false;
  if constexpr (Crew::kSignaller) signaller = header.signaller != 0;
  const std::uint32_t warps = signaller ? crew.warps() - 1 : crew.warps();
  const bool moves = crew.warp() < warps;
  const std::uint32_t giver = signaller ? warps * kLanes : 0;  // the thread that signals
  // of this warp: of the rest of a step it gets this tile
  std::uint32_t turn = crew.warp() >= place.dealt ? crew.warp() - place.dealt : crew.warp() + warps - place.dealt;
  bool came = true;  // everything that this thread has waited for
  for (std::int32_t s = place.step; s < count; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? detail::now_ns() : 0;
    const bool watched = kTraced && block == 0 && crew.thread() == 0;
    if (step.deps > 0 || step.verb == Verb::wait) {
      Came found = Came::yes;
      if (crew.thread() == 0 && came) found = what_it_needs(l, task, step, epoch, crew, waits);
      came = came && found == Came::yes;
      if (signaller) {
        if constexpr (Crew::kSignaller) came = moves ? crew.movers(came) : came;
      } else if (!crew.all(came)) {
        if constexpr (Waits::kLeaves) {
          place.step = s;
          if (crew.all(came || found == Came::not_yet)) return Went::as_far_as_it_could;
        }
        return Went::wrong;
      }
    }
    if (step.tiles > 0 && came && moves) {
      const Dealt dealt{step, block, blocks, warps};
      came = move<kReduces>(l, task, dealt, epoch, crew.warp(), turn);
      if (step.keeps_turn == 0) {
        const std::uint32_t rest = dealt.rest_count();  // at most one for each warp
        turn = turn >= rest ? turn - rest : turn + warps - rest;
        if constexpr (Waits::kLeaves) place.dealt = (place.dealt + rest) % warps;
      }
    }
    if (step.verb == Verb::signal || step.verb == Verb::reduce || step.awaited != 0) {
      if (!crew.all(came)) return Went::wrong;
      const std::uint64_t end = (epoch - crew.elsewhere(l)) * kShares;
      const bool gives = crew.thread() == giver;
      if (gives && step.verb == Verb::signal) give(step.counter, target_of(step, epoch), block, blocks);
      if (gives && step.awaited == kAwaited) give(&l.ends[step.end], end, block, blocks);
      if (gives && step.awaited == kInBlock) store_relaxed(&l.ends[step.end], end);
    }
    const std::int32_t last = s + step.followers + step.joined;
    for (std::int32_t k = s; watched && came && k <= last; ++k) record(l, steps[k], epoch, begin);
    s = last;
  }
  return came ? Went::to_its_end : Went::wrong;
}

/// Asks the host's thread for a message, in the message's own word: the epoch, in units of kShares, plus which copy of
/// the buffer the epoch uses. The message's memory is ready: packed, or free.
TASUKI_DEVICE void ask(const PlanRun& l, const GpuStep& step, std::uint64_t epoch) {
  std::uint64_t copy = 0;
  if (step.src.copies > 1)
    copy = static_cast<std::uint64_t>((base_of(l, step.src, epoch) - step.src.base) / step.src.stride);
  store_release(step.counter, epoch * kShares + copy);
}

/// Runs a lane that moves nothing, with one thread, from its step number `s` on.
template <bool kTraced, class Crew, class Waits>
TASUKI_DEVICE Went run_light_lane(const PlanRun& l, const Task& task, std::int32_t lane, std::uint64_t epoch,
                                  const Crew& crew, Waits& waits, std::int32_t& s) {
  const auto& header = task.header();
  const auto* ends = task.list<std::int32_t>(header.ends);
  const auto* steps = task.list<GpuStep>(header.steps);
  for (; s < ends[lane]; ++s) {
    const GpuStep& step = steps[s];
    const std::uint64_t begin = kTraced ? detail::now_ns() : 0;
    const Came came = what_it_needs(l, task, step, epoch, crew, waits);
    if (came != Came::yes) return came == Came::not_yet ? Went::as_far_as_it_could : Went::wrong;
    if (step.asks != 0) {
      ask(l, step, epoch);
    } else if (step.verb == Verb::signal) {
      const std::uint64_t target = target_of(step, epoch);
      if (Crew::kFresh && step.alone != 0) {
        store_relaxed(step.counter, target);
      } else {
        store_release(step.counter, target);
      }
    }
    if (step.awaited != 0) store_release(&l.ends[step.end], (epoch - crew.elsewhere(l)) * kShares);
    if (kTraced && step.untraced == 0) record(l, step, epoch, begin);
  }
  return Went::to_its_end;
}

TASUKI_DEVICE std::int32_t first_step(const Task& task, std::int32_t lane) {
  return lane == 0 ? 0 : task.list<std::int32_t>(task.header().ends)[lane - 1];
}

}  // namespace tasuki::device::lowered
