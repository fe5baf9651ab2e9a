// Where packets and the words of small collectives lie, and how their lines are awaited and combined. Part of
// tasuki/kernel.cuh; exchange.cuh has the calls.
//
// An exchange has two sets of lines, which its rounds use in turn. That is enough: a rank begins round n + 2 when it
// has the lines of round n + 1 of all others, and each of them has stored these after it has read those of round n.
#pragma once

#include "tasuki/kernel/impl/views.cuh"
#include "tasuki/kernel/impl/word_lines.cuh"

namespace tasuki::device {

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

}  // namespace tasuki::device
