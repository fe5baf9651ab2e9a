// How a group stores and unpacks LL lines of one word and its number each (Line in words.cuh): of packets and of small
// messages. Part of tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/group.cuh"

namespace tasuki::device::detail {

constexpr int kLinesAtOnce = 4;  // of a thread, that are on their way

/// By all threads of a group: stores lines 0 to `words - 1`. Line i has the word `load(i)` and the number `number(i)`.
/// A thread loads some words before it stores the first.
template <class Index, class Group, class Load, class Number>
TASUKI_DEVICE void put_lines(const Group& group, Line* lines, Index words, const Load& load, const Number& number) {
  const auto threads = static_cast<Index>(group.threads());
  TASUKI_ROLLED
  for (auto n = static_cast<Index>(group.thread()); n < words; n += kLinesAtOnce * threads) {
    Word word[kLinesAtOnce];
    TASUKI_UNROLLED
    for (int j = 0; j < kLinesAtOnce; ++j)
      if (n + j * threads < words) word[j] = load(n + j * threads);
    TASUKI_UNROLLED
    for (int j = 0; j < kLinesAtOnce; ++j) {
      const Index at = n + j * threads;
      if (at < words) store_line(lines + at, Line{word[j], number(at)});
    }
  }
}

/// By all threads of a group: `take(i, line)` for lines `first` to `words - 1`, each of which has been loaded once. It
/// waits for the line, which it gets again if need be, and says whether it has come. False on a thread for which one
/// has not.
template <class Index, class Group, class Take>
TASUKI_DEVICE bool unpack_lines(const Group& group, const Line* lines, Index first, Index words, const Take& take) {
  const auto threads = static_cast<Index>(group.threads());
  TASUKI_ROLLED
  for (Index n = first + static_cast<Index>(group.thread()); n < words; n += kLinesAtOnce * threads) {
    Line line[kLinesAtOnce];
    TASUKI_UNROLLED
    for (int j = 0; j < kLinesAtOnce; ++j)
      if (n + j * threads < words) line[j] = load_line(lines + n + j * threads);
    TASUKI_UNROLLED
    for (int j = 0; j < kLinesAtOnce; ++j) {
      const Index at = n + j * threads;
      if (at >= words) break;
      if (!take(at, line[j])) return false;
    }
  }
  return true;
}

}  // namespace tasuki::device::detail
