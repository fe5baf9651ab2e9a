// Packets, an all-to-all of a few words and an allreduce of a few values. Part of tasuki/kernel.cuh. The data travel in
// LL lines of one word and its number, so that no call waits for a fence.
//
// Who calls, errors and deadline: as team.cuh says. Order: what the group has written before a call is in what it
// sends, and all threads of the group may read what it receives. Otherwise these calls are in no order with anything
// else.
#pragma once

#include "tasuki/kernel/impl/exchange_lines.cuh"
#include "tasuki/kernel/team.cuh"

namespace tasuki::device {

/// Operators of `allreduce`. Any function of two values that returns one will do; it is called as op(lower rank's,
/// higher rank's).
struct Sum {
  template <class T>
  TASUKI_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Least {
  template <class T>
  TASUKI_DEVICE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <class T>
  TASUKI_DEVICE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

/// Stores `bytes` bytes from `from` as packet `number` of slot `slot` that rank `to` has for this rank: quicker than
/// `put_with_signal` up to some 64 KiB. Up to KernelTeamOptions::packet bytes. `from` may change as soon as the call
/// returns. Numbers of a slot only grow, from 1 on. The next packet of a slot may be put only after the receiver has
/// signalled, by a call of its own, that it has received the last one. One group at a time uses a slot. Quickest if
/// `from` and `bytes` are multiples of 8. Does not wait.
/// Errors: no such rank or slot, an unreachable rank, too many bytes.
template <class Group>
TASUKI_DEVICE bool put_packet(const Team& team, const Group& group, int to, int slot, Word number, const void* from,
                              Word bytes) {
  if (!detail::check_slot(team, Call::put_packet, to, slot, team.packets)) return false;
  if (bytes > 8 * team.packet_lines)
    return detail::fail(team, Call::put_packet, Reason::too_large, to, slot, 8 * team.packet_lines, bytes);
  Line* const lines = detail::packet_at(team, to, team.rank, slot);
  const auto words = static_cast<unsigned>((bytes + 7) / 8);
  const auto* const data = static_cast<const Byte*>(from);
  const auto of_packet = [&](unsigned) { return number; };
  const bool whole = detail::whole_words(from, bytes);
  group.sync();
  if (whole) {
    detail::put_lines(
        group, lines, words, [&](unsigned i) { return static_cast<const Word*>(from)[i]; }, of_packet);
  } else {
    detail::put_lines(
        group, lines, words, [&](unsigned i) { return detail::load_bytes(data + Word{8} * i, bytes - Word{8} * i); },
        of_packet);
  }
  return group.all(detail::working(team));  // looked at while the packet travels
}

/// Waits for packet `number` in slot `slot` of rank `from`, and copies its `bytes` bytes to `to`, where all threads of
/// the group may read them. `bytes` must be what the sender gave. Errors: those of `put_packet`, the deadline, and a
/// later packet that has overwritten this one.
template <class Group>
TASUKI_DEVICE bool wait_packet(const Team& team, const Group& group, int from, int slot, Word number, void* to,
                               Word bytes) {
  if (!detail::check_slot(team, Call::wait_packet, from, slot, team.packets)) return false;
  if (bytes > 8 * team.packet_lines)
    return detail::fail(team, Call::wait_packet, Reason::too_large, from, slot, 8 * team.packet_lines, bytes);
  const bool alive = detail::working(team);
  const Line* const lines = detail::packet_at(team, team.rank, from, slot);
  const auto words = static_cast<unsigned>((bytes + 7) / 8);
  auto* const data = static_cast<Byte*>(to);
  const auto await = [&](unsigned i, Line& line) {
    return detail::await_number(team, lines + i, number, line, Call::wait_packet, from, slot);
  };
  bool good = false;
  if (detail::whole_words(to, bytes)) {
    good = detail::unpack_lines(group, lines, 0u, words, [&](unsigned i, Line& line) {
      if (!await(i, line)) return false;
      static_cast<Word*>(to)[i] = line.data;
      return true;
    });
  } else {
    good = detail::unpack_lines(group, lines, 0u, words, [&](unsigned i, Line& line) {
      if (!await(i, line)) return false;
      detail::store_bytes(data + Word{8} * i, line.data, bytes - Word{8} * i);
      return true;
    });
  }
  return group.all(good && alive);
}

/// Sends `words` words to every rank and receives as many from each. Those for rank r begin at `mine + r * words`,
/// those from it at `theirs + r * words`; `theirs` may be `mine`. `words` is the same on all ranks, up to
/// KernelTeamOptions::exchange_words.
/// Who calls: one group of each rank at a time for each exchange `which`.
/// Errors: no such exchange, too many words, the deadline.
template <class Group>
TASUKI_DEVICE bool all_to_all(const Team& team, const Group& group, const Word* mine, Word* theirs, int words,
                              int which = 0) {
  const auto each = static_cast<Word>(words);
  if (!detail::check_exchange(team, Call::all_to_all, which, each)) return false;
  if (each == 0) return group.all(detail::working(team));  // nobody waits, and so it does not count
  const auto thread = static_cast<Word>(group.thread());
  const auto threads = static_cast<Word>(group.threads());
  const Word all = static_cast<Word>(team.ranks) * each;
  Word& passed = detail::exchanged(team, which);
  group.sync();
  const Word next = passed + 1;
  for (Word i = thread; i < all; i += threads)
    detail::store_line(detail::exchange_at(team, static_cast<int>(i / each), team.rank, which, next) + i % each,
                       Line{mine[i], next});
  const bool alive = detail::working(team);
  bool good = true;
  for (Word i = thread; i < all && good; i += threads) {
    const auto rank = static_cast<int>(i / each);
    const Line* const at = detail::exchange_at(team, team.rank, rank, which, next) + i % each;
    Line line = detail::load_line(at);
    good = detail::await_number(team, at, next, line, Call::all_to_all, rank, which);
    if (good) theirs[i] = line.data;
  }
  good = group.all(good && alive);
  if (thread == 0) passed = next;
  return good;
}

/// Combines a value of up to 8 bytes of every rank, in the order of ranks, so that all get the same bits. Every thread
/// of the group gives the same value and gets the result.
/// Who calls, and errors: as of `all_to_all`, with which it shares the exchanges `which`.
template <class Group, class T, class Op>
TASUKI_DEVICE bool allreduce(const Team& team, const Group& group, const T& value, const Op& op, T& result,
                             int which = 0) {
  if (!detail::check_exchange(team, Call::allreduce, which, 1)) return false;
  Word& passed = detail::exchanged(team, which);
  group.sync();
  const Word next = passed + 1;
  for (int rank = group.thread(); rank < team.ranks; rank += group.threads())
    if (rank != team.rank)
      detail::store_line(detail::exchange_at(team, rank, team.rank, which, next), Line{detail::word_of(value), next});
  const bool alive = detail::working(team);
  const bool good = group.all(detail::combine(team, which, next, 0, value, op, result) && alive);
  if (group.thread() == 0) passed = next;
  return good;
}

/// The same for `count` values that lie one after the other, up to KernelTeamOptions::exchange_words. `to` may be
/// `from`.
template <class Group, class T, class Op>
TASUKI_DEVICE bool allreduce(const Team& team, const Group& group, const T* from, T* to, int count, const Op& op,
                             int which = 0) {
  const auto all = static_cast<Word>(count);
  if (!detail::check_exchange(team, Call::allreduce, which, all)) return false;
  if (all == 0) return group.all(detail::working(team));
  const auto thread = static_cast<Word>(group.thread());
  const auto threads = static_cast<Word>(group.threads());
  Word& passed = detail::exchanged(team, which);
  group.sync();
  const Word next = passed + 1;
  for (Word i = thread; i < all; i += threads)
    for (int step = 1; step < team.ranks; ++step) {
      const int rank = (team.rank + step) % team.ranks;
      detail::store_line(detail::exchange_at(team, rank, team.rank, which, next) + i,
                         Line{detail::word_of(from[i]), next});
    }
  const bool alive = detail::working(team);
  bool good = true;
  for (Word i = thread; i < all && good; i += threads) {
    T result = from[i];
    good = detail::combine(team, which, next, i, from[i], op, result);
    if (good) to[i] = result;
  }
  good = group.all(good && alive);
  if (thread == 0) passed = next;
  return good;
}

}  // namespace tasuki::device
