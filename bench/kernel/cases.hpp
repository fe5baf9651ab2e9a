// What is measured: kernels that play ping-pong between ranks 0 and 1 inside one launch (a rank alone plays with
// itself), and those that all ranks run. Part of main.cpp.
#pragma once

#include "tasuki/kernel.hpp"

namespace {

namespace device = tasuki::device;
using device::Byte;
using device::Word;

#if defined(__CUDACC__)
inline constexpr Word kMost = 1 << 24;  // bytes
#else
inline constexpr Word kMost = 1 << 20;
#endif
inline constexpr Word kMostCopied = 1 << 20;  // of a message that is copied once more
inline constexpr Word kLong = 1 << 18;        // from here on a tenth of the iterations are enough
inline constexpr Word kWarmUp = 20;           // ping-pongs before the clock is looked at
inline constexpr Word kFewest = 64;           // bytes of a block's share
inline constexpr Word kMostPacket = 1 << 16;

struct Run {
  Word bytes;
  Word iterations;
  Word first;    // number of the first ping-pong: signals only grow
  Byte* memory;  // not in the window
  Word* times;   // ns, by block
};

TASUKI_DEVICE int other_of(const device::Team& team) {
  return team.ranks == 1 ? 0 : 1 - team.rank;
}

/// `ping` and `pong` tell whether they have come to their end; both ranks time all of it.
template <class Group, class Ping>
TASUKI_DEVICE void play(const device::Team& team, const Group& group, const Run& run, Ping&& ping) {
  if (team.rank > 1) return;
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    const Word number = run.first + i;
    if (team.rank == 0) {
      if (!ping(true, number) || !ping(false, number)) return;
    } else {
      if (!ping(false, number) || !ping(true, number)) return;
    }
  }
  if (group.thread() == 0) run.times[device::this_block().block()] = device::detail::now_ns() - begin;
}

/// By a block, or by its first warp or thread.
template <class Group>
TASUKI_KERNEL void words(TASUKI_PARAMETER device::Team team, Run run) {
  const Group group;
  if (device::this_block().thread() >= group.threads()) return;
  const int other = other_of(team);
  play(team, group, run, [&](bool sends, Word number) {
    Word word = 0;
    return sends ? device::put_word(team, group, other, 0, number, number)
                 : device::wait_word(team, group, other, 0, number, word);
  });
}

TASUKI_KERNEL void puts(TASUKI_PARAMETER device::Team team, Run run) {
  const auto group = device::this_block();
  const int other = other_of(team);
  const Word share = run.bytes / static_cast<Word>(group.blocks());
  const Word at = share * static_cast<Word>(group.block());
  play(team, group, run, [&](bool sends, Word number) {
    return sends ? device::put_with_signal(team, group, other, at, run.memory + at, share, group.block(), number)
                 : device::wait_signal(team, group, other, group.block(), number);
  });
}

TASUKI_KERNEL void packets(TASUKI_PARAMETER device::Team team, Run run) {
  const auto group = device::this_block();
  const int other = other_of(team);
  const Word share = run.bytes / static_cast<Word>(group.blocks());
  const Word at = share * static_cast<Word>(group.block());
  play(team, group, run, [&](bool sends, Word number) {
    return sends ? device::put_packet(team, group, other, group.block(), number, run.memory + at, share)
                 : device::wait_packet(team, group, other, group.block(), number, run.memory + kMost + at, share);
  });
}

/// Sums or words of all ranks, one after the other.
TASUKI_KERNEL void exchanges(TASUKI_PARAMETER device::Team team, Run run, bool sums) {
  const auto group = device::this_block();
  const int words = static_cast<int>(run.bytes / 8);
  auto* const mine = reinterpret_cast<Word*>(run.memory);
  Word begin = 0;
  Word sum = 1;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    if (!(sums ? device::allreduce(team, group, sum % 1000, device::Sum(), sum)
               : device::all_to_all(team, group, mine, mine, words)))
      return;
  }
  if (group.thread() == 0) run.times[group.block()] = device::detail::now_ns() - begin + (sum == 0 ? 1 : 0);
}

/// When a receive is posted.
enum class Posted {
  before,  // its message is sent
  late,    // when its message is on its way, or there
  behind,  // when its message is there, and one after it has been received
};

/// Each block, or its first warp or thread, plays with that of the same block of the other rank, with tags of its own.
template <class Group>
TASUKI_KERNEL void messages(TASUKI_PARAMETER device::Messages m, Run run, bool in_window, Posted posted) {
  const Group group;
  if (device::this_block().thread() >= group.threads()) return;
  const int block = device::this_block().block();
  const int other = other_of(m.team);
  const Word at = run.bytes * static_cast<Word>(block);
  auto* const from = (in_window ? static_cast<Byte*>(device::window(m.team, m.team.rank)) : run.memory) + at;
  Byte* const to = run.memory + kMost + at;
  const int tag = 5 + 2 * block;
  const bool ahead = posted == Posted::before;
  device::Request receive;
  device::Request next;
  if (m.team.rank < 2 && ahead && !device::irecv(m, group, other, to, run.bytes, tag, receive)) return;
  play(m.team, group, run, [&](bool sends, Word number) {
    device::Request send;
    if (sends) {
      if (!device::isend(m, group, other, from, run.bytes, tag, send)) return false;
      if (posted != Posted::behind) return device::wait(m, group, send);
      device::Request after;  // a long message ends only when it is received, which is after this one
      return device::isend(m, group, other, from, 8, tag + 1, after) && device::wait(m, group, after) &&
             device::wait(m, group, send);
    }
    const bool last = number + 1 == run.first + run.iterations + kWarmUp;
    if (posted == Posted::behind &&
        !(device::irecv(m, group, other, run.memory + at, 8, tag + 1, receive) && device::wait(m, group, receive)))
      return false;
    if (ahead && !last && !device::irecv(m, group, other, to, run.bytes, tag, next)) return false;
    if (!ahead && !device::irecv(m, group, other, to, run.bytes, tag, receive)) return false;
    if (!device::wait(m, group, receive)) return false;
    receive = next;
    return true;
  });
}

TASUKI_KERNEL void barriers(TASUKI_PARAMETER device::Team team, Run run, bool all_blocks) {
  const auto block = device::this_block();
  Word begin = 0;
  for (Word i = 0; i < run.iterations + kWarmUp; ++i) {
    if (i == kWarmUp) begin = device::detail::now_ns();
    if (!(all_blocks ? device::barrier(team, device::this_grid()) : device::barrier(team, block))) return;
  }
  if (block.thread() == 0) run.times[block.block()] = device::detail::now_ns() - begin;
}

}  // namespace
