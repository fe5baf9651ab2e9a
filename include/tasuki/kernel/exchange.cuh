// Packets, an all-to-all of a few words and an allreduce of a few values: data that travels in lines with their number
// (words.cuh), so that nobody waits for a fence. Part of tasuki/kernel.cuh.
//
// Both halves of an exchange's lines take turns: a rank that is in the next but one has heard from all others that they
// are in the next, and so have read the lines of this one.
#pragma once

#include "tasuki/kernel/impl/word_lines.cuh"
#include "tasuki/kernel/shape.cuh"

namespace tasuki::device {

/// What `allreduce` combines by; anything that takes two values and gives one will do.
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

namespace detail {

TASUKI_DEVICE Line* packet_at(const Team& team, int at, int from, int slot) {
  return reinterpret_cast<Line*>(team.base[at] + team.packets_at) +
         (static_cast<Word>(from) * team.packets + slot) * team.packet_lines;
}
/// The words of rank `from` in the exchange of that number.
TASUKI_DEVICE Line* exchange_at(const Team& team, int at, int from, int which, Word number) {
  const Word half = static_cast<Word>(which) * 2 + number % 2;
  return reinterpret_cast<Line*>(team.base[at] + team.exchanges_at) +
         (half * team.ranks + static_cast<Word>(from)) * team.exchange_words;
}
/// How many exchanges have been. Only the group that makes them looks there.
TASUKI_DEVICE Word& exchanged(const Team& team, int which) {
  return *reinterpret_cast<Word*>(team.base[team.rank] + team.exchanged_at + static_cast<Word>(which) * kCacheLine);
}

/// A line that has been looked at, until it has that number. False if it does not come, or if a later one has.
TASUKI_DEVICE bool await_number(const Team& team, const Line* at, Word number, Line& line, Call call, int from,
                                int slot) {
  for (int looks = kQuickLooks; looks > 0 && line.number < number; --looks) line = load_line(at);
  if (line.number == number) return true;
  Deadline deadline(team);
  for (;;) {
    line = load_line(at);
    if (line.number == number) return true;
    if (line.number > number) return fail(team, call, Reason::overrun, from, slot, number, line.number);
    if (deadline.more()) continue;
    if (deadline.why() != Reason::none) fail(team, call, deadline.why(), from, slot, number, line.number);
    return false;
  }
}

template <class T>
TASUKI_DEVICE Word word_of(const T& value) {
  static_assert(sizeof(T) <= sizeof(Word), "values of up to 8 bytes");
  Word word = 0;
#if defined(__CUDACC__)
  memcpy(&word, &value, sizeof(T));
#else
  std::memcpy(&word, &value, sizeof(T));
#endif
  return word;
}
template <class T>
TASUKI_DEVICE T value_of(Word word) {
  T value;
#if defined(__CUDACC__)
  memcpy(&value, &word, sizeof(T));
#else
  std::memcpy(&value, &word, sizeof(T));
#endif
  return value;
}

constexpr int kRanksAtOnce = 8;  // whose lines are on their way

/// By one thread: combines the ranks' words at place `i` of an exchange, in the order of ranks. False if one does not
/// come.
template <class T, class Op>
TASUKI_DEVICE bool combine(const Team& team, int which, Word number, Word i, const T& mine, const Op& op, T& result) {
  T all = mine;
  for (int first = 0; first < team.ranks; first += kRanksAtOnce) {
    Line line[kRanksAtOnce];
    TASUKI_UNROLLED
    for (int j = 0; j < kRanksAtOnce; ++j)
      if (first + j < team.ranks && first + j != team.rank)
        line[j] = load_line(exchange_at(team, team.rank, first + j, which, number) + i);
    TASUKI_UNROLLED
    for (int j = 0; j < kRanksAtOnce; ++j) {
      const int rank = first + j;
      if (rank >= team.ranks) break;
      T value = mine;
      if (rank != team.rank) {
        if (!await_number(team, exchange_at(team, team.rank, rank, which, number) + i, number, line[j], Call::allreduce,
                          rank, which))
          return false;
        value = value_of<T>(line[j].data);
      }
      all = rank == 0 ? value : op(all, value);
    }
  }
  result = all;
  return true;
}

TASUKI_DEVICE bool check_exchange(const Team& team, Call call, int which, Word words) {
  if (!check_slot(team, call, team.rank, which, team.exchanges)) return false;
  if (words > team.exchange_words)
    return fail(team, call, Reason::too_large, team.rank, which, team.exchange_words, words);
  return true;
}

/// Whether memory is so many whole words.
TASUKI_DEVICE bool whole_words(const void* at, Word bytes) {
  return (reinterpret_cast<Word>(at) | bytes) % 8 == 0;
}

}  // namespace detail

/// `bytes` bytes from `from` as packet `slot` that rank `to` has for this rank, each 8 with the packet's number:
/// quicker than `put_with_signal` up to some 64 KiB, and in no order with anything else. What the group's threads have
/// written before is in it, and `from` may be changed at once. Numbers of a slot only grow, from 1 on; the next may be
/// put only once the other has said that it has taken the last. Several blocks have a slot each. Quickest if `from` and
/// `bytes` are multiples of 8.
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

/// Waits until packet `slot` of rank `from` has come with that number, and copies its `bytes` bytes, as many as were
/// put, to `to`, where all threads of the group may read them. It fails if a later number has come.
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
    good = detail::take_lines(group, lines, 0u, words, [&](unsigned i, Line& line) {
      if (!await(i, line)) return false;
      static_cast<Word*>(to)[i] = line.data;
      return true;
    });
  } else {
    good = detail::take_lines(group, lines, 0u, words, [&](unsigned i, Line& line) {
      if (!await(i, line)) return false;
      detail::store_bytes(data + Word{8} * i, line.data, bytes - Word{8} * i);
      return true;
    });
  }
  return group.all(good && alive);
}

/// Gives `words` words to every rank and gets as many from each: those for rank r, and from it, begin at r * words.
/// `theirs` may be `mine`. By one group of each rank at a time for each exchange `which`; the same number of words on
/// all ranks, up to KernelTeamOptions::exchange_words. `mine` is what the group's threads have written before, and all
/// of them may read `theirs`. In no order with anything else.
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
/// of the group brings the same value and gets the result. By one group of each rank at a time for each exchange
/// `which`, which it shares with `all_to_all`. In no order with anything else.
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
/// `from`. `from` is what the group's threads have written before, and all of them may read `to`.
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
