// What the hardware takes at least for what the cases measure: raw loads and stores, without checks, deadlines or
// failures. A look that finds nothing for a second or so gives up,
// and then the time is absurd. All that is stored is a number of this round or one before.
#pragma once

#include "tasuki/kernel.hpp"

namespace floors {

namespace device = tasuki::device;
using device::Byte;
using device::Line;
using device::Word;

constexpr long kMostLooks = 1L << 24;
constexpr Word kFlags = 1 << 14;  // bytes that flags of blocks take, behind the data
#if !defined(__CUDACC__)
constexpr long kSpins = 50;
#endif

struct Wires {
  Byte* mine;    // of at least two times the most bytes that are sent, and kFlags
  Byte* theirs;  // the same of the other rank
  Word* times;   // ns
  bool first;    // begins
  Word bytes;    // by all blocks
  Word rounds;
  Word number;  // of the first round: numbers only grow
};

/// A wire between ranks 0 and 1. Numbers lie behind the data.
TASUKI_DEVICE Word* flag_of(Byte* memory, Word bytes, int block) {
  return reinterpret_cast<Word*>(memory + bytes) + block * 16;
}

template <class F>
TASUKI_DEVICE bool look(F&& f) {
  for (long i = 0; i < kMostLooks; ++i) {
    if (f()) return true;
#if !defined(__CUDACC__)
    if (i > kSpins) std::this_thread::yield();
#endif
  }
  return false;
}

/// `send(n)` and `wait(n)`; false if the other does not answer.
template <class Send, class Wait>
TASUKI_DEVICE bool play(const Wires& w, Send&& send, Wait&& wait) {
  for (Word n = w.number; n < w.number + w.rounds; ++n) {
    if (w.first) send(n);
    if (!wait(n)) return false;
    if (!w.first) send(n);
  }
  return true;
}

TASUKI_DEVICE void note_time(const Wires& w, Word begin, bool good) {
  const auto block = device::this_block();
  if (block.thread() == 0) w.times[block.block()] = good ? device::detail::now_ns() - begin : ~Word{0};
}

/// 8 bytes in one store with their number, by one thread.
TASUKI_KERNEL void line(TASUKI_PARAMETER Wires w) {
  if (device::this_block().thread() != 0) return;
  const Word begin = device::detail::now_ns();
  const bool good = play(
      w,
      [&](Word n) {
        device::detail::store_line(reinterpret_cast<Line*>(w.theirs), Line{n, n});
      },
      [&](Word n) {
        return look([&] { return device::detail::load_line(reinterpret_cast<Line*>(w.mine)).number >= n; });
      });
  note_time(w, begin, good);
}

/// Lines of all threads of all blocks, each of which looks for its own: 8 bytes of data in each.
TASUKI_KERNEL void lines(TASUKI_PARAMETER Wires w) {
  const auto block = device::this_block();
  const Word threads = static_cast<Word>(block.threads()) * static_cast<Word>(block.blocks());
  const Word me =
      static_cast<Word>(block.block()) * static_cast<Word>(block.threads()) + static_cast<Word>(block.thread());
  auto* const theirs = reinterpret_cast<Line*>(w.theirs);
  const auto* const mine = reinterpret_cast<const Line*>(w.mine);
  const Word begin = device::detail::now_ns();
  bool good = play(
      w,
      [&](Word n) {
        for (Word i = me; 8 * i < w.bytes; i += threads) device::detail::store_line(theirs + i, Line{n, n});
      },
      [&](Word n) {
        bool all = true;
        for (Word i = me; 8 * i < w.bytes; i += threads)
          all = all && look([&] { return device::detail::load_line(mine + i).number >= n; });
        return all;
      });
  good = block.all(good);
  note_time(w, begin, good);
}

/// Data in place by a block or several, a flag by one thread of each behind a fence.
TASUKI_KERNEL void flagged(TASUKI_PARAMETER Wires w) {
  const auto block = device::this_block();
  const Word share = w.bytes / static_cast<Word>(block.blocks());
  const Word at = share * static_cast<Word>(block.block());
  const Word begin = device::detail::now_ns();
  const bool good = play(
      w,
      [&](Word n) {
        device::detail::copy(block, w.theirs + at, w.mine + w.bytes + kFlags + at, share);
        block.sync();
        if (block.thread() == 0) device::detail::store_release(flag_of(w.theirs, w.bytes, block.block()), n);
      },
      [&](Word n) {
        bool came = true;
        if (block.thread() == 0)
          came = look([&] { return device::detail::load_acquire(flag_of(w.mine, w.bytes, block.block())) >= n; });
        return block.all(came);
      });
  note_time(w, begin, good);
}

/// A flag each way at the same time, released and acquired by one thread.
TASUKI_KERNEL void meeting(TASUKI_PARAMETER Wires w) {
  if (device::this_block().thread() != 0) return;
  const Word begin = device::detail::now_ns();
  bool good = true;
  for (Word n = w.number; good && n < w.number + w.rounds; ++n) {
    device::detail::store_release(flag_of(w.theirs, 0, 0), n);
    good = look([&] { return device::detail::load_acquire(flag_of(w.mine, 0, 0)) >= n; });
  }
  note_time(w, begin, good);
}

}  // namespace floors
