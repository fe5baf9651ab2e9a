// Team: the ranks whose memory a kernel stores into, and the primitives: put, signal, word, barrier. Part of
// tasuki/kernel.cuh. Made on the host by KernelTeam (tasuki/kernel.hpp). A kernel reads `team.rank` and `team.ranks`;
// the other members are Tasuki's own.
//
// Who calls. All threads of a group call, with equal arguments, and all get the same result. A call is local, except
// for barriers, which every rank calls.
//
// Order. "Writes of the group before the call" are those that its threads have made in program order, and those of
// other threads that they have synchronised with (by `sync`, a barrier, a signal).
//
// Errors. A call returns false if an argument is wrong, if its deadline has passed, if the host has aborted, or if any
// call on this rank has failed before. The rank's first failure is kept, and the host throws it. After false: leave the
// kernel.
//
// Deadline. Every wait ends after nine tenths of the context's deadline, and at once when the host has seen a rank die.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/team_memory.cuh"

namespace tasuki::device {

/// True if a call on this rank has failed, or the host has ended its kernels' waits: every call returns false then. For
/// loops of the kernel's own.
/// Who calls: any thread, by itself. Order: none. It reads the clock in each call, and the host's word at most every
/// 10 us. It does not wait, so it has no deadline: the loop ends when what it waits for comes, or a rank fails.
TASUKI_DEVICE bool failed(const Team& team) {
  if (!detail::same_version(team.heading) || !detail::working(team)) return true;
  if (!detail::stop_requested(team.stop, detail::now_ns())) return false;
  detail::fail(team, Call::failed, Reason::aborted, team.rank, 0);  // so that the other threads know it
  return true;
}

/// The window of `rank` in this rank's address space, for loads and stores of the kernel's own. Null if there is no
/// such rank, or its memory is unreachable. Who calls: any thread, by itself. It does not wait, and is no failure.
TASUKI_DEVICE void* window(const Team& team, int rank) {
  if (!detail::is_rank(team, rank) || team.base[rank] == nullptr) return nullptr;
  return team.base[rank] + team.window_at;
}

/// Copies `bytes` bytes from `from`, memory of this rank, into the window of rank `to` at byte `offset`.
/// Order: the group's writes before the call are in the copy. The receiver may read it after a later `signal` or
/// `barrier` of the same group. `from` may change as soon as the call returns. Quickest if `from` and `offset` are
/// multiples of 16. Does not wait.
/// Errors: no such rank, an unreachable one, bytes outside the window.
template <class Group>
TASUKI_DEVICE bool put(const Team& team, const Group& group, int to, Word offset, const void* from, Word bytes) {
  return detail::put_by(Call::put, team, group, to, offset, from, bytes);
}

/// Stores `value` into signal `slot` that rank `to` has for this rank. Values of a slot only grow, over launches too.
/// One group at a time signals a slot. Order: a release of system scope of all that the group has put or written
/// before. Does not wait. Errors: no such rank or slot, an unreachable rank.
template <class Group>
TASUKI_DEVICE bool signal(const Team& team, const Group& group, int to, int slot, Word value) {
  if (!detail::check_slot(team, Call::signal, to, slot, team.signals)) return false;
  const bool good = detail::working(team);
  group.sync();
  if (group.thread() == 0) detail::store_release(detail::signal_at(team, to, team.rank, slot), value);
  return group.all(good);
}

/// `put`, then `signal`, with one check less. Order and errors as of both. Does not wait.
template <class Group>
TASUKI_DEVICE bool put_with_signal(const Team& team, const Group& group, int to, Word offset, const void* from,
                                   Word bytes, int slot, Word value) {
  if (!detail::check_slot(team, Call::put_with_signal, to, slot, team.signals)) return false;
  if (!detail::put_by(Call::put_with_signal, team, group, to, offset, from, bytes)) return false;
  if (group.thread() == 0) detail::store_release(detail::signal_at(team, to, team.rank, slot), value);
  return true;
}

/// Waits until signal `slot` of rank `from` has reached `least`. One group at a time waits for a slot.
/// Order: an acquire of system scope. All threads of the group may read what that rank's group had put before it
/// signalled.
/// Errors: no such rank or slot, an unreachable rank, the deadline.
template <class Group>
TASUKI_DEVICE bool wait_signal(const Team& team, const Group& group, int from, int slot, Word least) {
  if (!detail::check_slot(team, Call::wait_signal, from, slot, team.signals)) return false;
  bool good = true;
  if (group.thread() == 0)
    good = detail::await(team, detail::signal_at(team, team.rank, from, slot), least, Call::wait_signal, from, slot);
  return group.all(good);
}

/// Stores 8 bytes and their number into word `slot` that rank `to` has for this rank, in one store of 16 bytes: the
/// quickest way to send 8 bytes. Numbers of a slot only grow, from 1 on, over launches too. The next word replaces the
/// last one, even if the receiver has not seen it.
/// Order: none with anything else. Does not wait. Errors: no such rank or slot, an unreachable rank.
template <class Group>
TASUKI_DEVICE bool put_word(const Team& team, const Group& group, int to, int slot, Word number, Word word) {
  if (!detail::check_word(team, Call::put_word, to, slot)) return false;
  if (group.thread() == 0) detail::store_line(detail::word_at(team, to, team.rank, slot), Line{word, number});
  return group.all(detail::working(team));  // looked at while the word travels
}

/// Waits until word `slot` of rank `from` has number `number` or a later one, and gives its 8 bytes to all threads.
/// Order: none with anything else. Errors: no such rank or slot, an unreachable rank, the deadline.
template <class Group>
TASUKI_DEVICE bool wait_word(const Team& team, const Group& group, int from, int slot, Word number, Word& word) {
  if (!detail::check_word(team, Call::wait_word, from, slot)) return false;
  const Line* const at = detail::word_at(team, team.rank, from, slot);
  bool good = detail::working(team);  // on its way while the word is looked at
  Line line = detail::load_line(at);  // by every thread, so that none has to broadcast it
  for (int looks = detail::kQuickLooks; looks > 0 && line.number < number; --looks) line = detail::load_line(at);
  detail::Deadline deadline(team);
  while (good && line.number < number) {
    if (deadline.more()) {
      line = detail::load_line(at);
      continue;
    }
    good = false;
    if (deadline.why() != Reason::none)
      detail::fail(team, Call::wait_word, deadline.why(), from, slot, number, line.number);
  }
  word = line.data;
  if (group.all(good && line.number == number)) return true;
  if (!group.all(good)) return false;
  word = group.broadcast(line.data);  // a later word has come, which some may not have seen
  return true;
}

/// Returns when every rank has called barrier `which` as often as this one.
/// Who calls: one group of each rank; another group may call the same barrier later.
/// Order: a release and an acquire of system scope. What the group of any rank had put or written before its call, the
/// groups of all ranks may read after theirs.
/// Errors: no such barrier, a team with unreachable ranks, the deadline.
template <class Group>
TASUKI_DEVICE bool barrier(const Team& team, const Group& group, int which = 0) {
  if (!detail::check_slot(team, Call::barrier, team.rank, which, team.barriers)) return false;
  const bool alive = detail::working(team);
  bool came = true;
  detail::Round& round = detail::round_of(team, which);
  // The addresses for this thread's first rank. Computed behind the fence they would delay the arrival.
  const int first = group.thread();
  const bool pairs = first < team.ranks && first != team.rank;
  Word* theirs = detail::arrival_at(team, pairs ? first : team.rank, team.rank, which);
  Word* own = detail::arrival_at(team, team.rank, pairs ? first : team.rank, which);
  detail::compute_now(theirs);
  detail::compute_now(own);
  group.sync();
  const Word next = round.passed + 1;
  if (first < team.ranks) {
    detail::fence();  // one for all that the group has written, on its way while `passed` is
    if (pairs) detail::store_arrival(theirs, next);
    for (int rank = first + group.threads(); rank < team.ranks; rank += group.threads())
      if (rank != team.rank) detail::store_arrival(detail::arrival_at(team, rank, team.rank, which), next);
    if (pairs) came = detail::await(team, own, next, Call::barrier, first, which);
    for (int rank = first + group.threads(); rank < team.ranks; rank += group.threads())
      if (rank != team.rank)
        came = came &&
               detail::await(team, detail::arrival_at(team, team.rank, rank, which), next, Call::barrier, rank, which);
  }
  const bool good = group.all(came && alive);
  if (group.thread() == 0) round.passed = next;
  return good;
}

/// The same for all blocks of every rank: `barrier(team, this_grid())`. Who calls: all threads of the launch on every
/// rank.
TASUKI_DEVICE bool barrier(const Team& team, const GridGroup& grid, int which = 0) {
  const BlockGroup block = grid.block();
  if (!detail::check_slot(team, Call::grid_barrier, team.rank, which, team.barriers)) return false;
  block.sync();
  detail::Round& round = detail::round_of(team, which);
  Word released = 0;
  Word come = 0;
  if (block.thread() == 0) {
    released = detail::load_relaxed(&round.released);  // it cannot change before this block has come
    come = detail::add_gpu(&round.come, 1) + 1;
  }
  if (block.broadcast(come) == static_cast<Word>(block.blocks())) {  // the last of this rank speaks for all
    if (!barrier(team, block, which)) return false;
    if (block.thread() == 0) {
      detail::store_relaxed(&round.come, 0);
      detail::store_release_gpu(&round.released, released + 1);
    }
    return true;
  }
  bool good = true;
  if (block.thread() == 0)
    good = detail::await(team, &round.released, released + 1, Call::grid_barrier, team.rank, which);
  return block.all(good);
}

}  // namespace tasuki::device
