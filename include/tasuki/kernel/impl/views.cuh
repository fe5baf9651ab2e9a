// Views: a message's bytes in this rank's memory, which threads load and store in words of 8 bytes. Part of
// tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/impl/team_memory.cuh"
#include "tasuki/kernel/shape.cuh"

namespace tasuki::device {

namespace detail {

/// A message's bytes in this rank's memory.
struct View {
  Byte* at = nullptr;
  Word bytes = 0;
  const ShapeBlock* blocks = nullptr;
};
TASUKI_DEVICE View contiguous(const void* at, Word bytes) {
  return {static_cast<Byte*>(const_cast<void*>(at)), bytes, nullptr};
}
TASUKI_DEVICE View shaped(const void* at, const Shape& shape) {
  return {static_cast<Byte*>(const_cast<void*>(at)), shape.bytes, shape.blocks};
}

// These two have no branch in which threads differ. Threads that have diverged call them. Of a loop here nvcc 13.0
// makes code with a convergence barrier of the processor at which the caller's other threads may be waiting; these then
// proceed too early, and the next barrier of the block counts their warp twice (see BlockGroup).

/// 8 bytes that lie together, or as many as are left. The halves are put together as numbers of 32 bits: with a number
/// of 64 bits, nvcc 13.0 reads a register that it has set to zero before it is zero (code of compute capability 9.0: a
/// LOP3 five cycles behind the CS2R, with a predicated IMAD.WIDE between them), and a single byte was then joined with
/// what the register had held.
TASUKI_RARE Word load_odd_bytes(const Byte* from, Word bytes) {
  unsigned half[2] = {0, 0};
  TASUKI_UNROLLED
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned byte = i < bytes ? from[i] : Byte{};
    half[i / 4] |= byte << 8 * (i % 4);
  }
  return static_cast<Word>(half[1]) << 32 | half[0];
}
TASUKI_RARE void store_odd_bytes(Byte* to, Word word, Word bytes) {
  TASUKI_UNROLLED
  for (Word i = 0; i < 8; ++i) {
    if (i < bytes) to[i] = static_cast<Byte>(word >> 8 * i);
  }
}
TASUKI_DEVICE Word load_bytes(const Byte* from, Word bytes) {
  if (bytes >= 8 && reinterpret_cast<Word>(from) % 8 == 0) return *reinterpret_cast<const Word*>(from);
  return load_odd_bytes(from, bytes);
}
TASUKI_DEVICE void store_bytes(Byte* to, Word word, Word bytes) {
  if (bytes >= 8 && reinterpret_cast<Word>(to) % 8 == 0) {
    *reinterpret_cast<Word*>(to) = word;
  } else {
    store_odd_bytes(to, word, bytes);
  }
}

/// Where byte i of a message is, and how many from it on lie together.
TASUKI_DEVICE Byte* place_of(View view, Word i, Word& together) {
  const ShapeBlock* block = view.blocks;
  while (i >= block->end) ++block;
  Word run = (i - block->begin) / block->unit;
  const Word rest = i - block->begin - run * block->unit;
  together = block->unit - rest;
  long long offset = block->offset + static_cast<long long>(rest);
  for (int d = block->dims - 1; d >= 0; --d) {
    offset += static_cast<long long>(run % block->count[d]) * block->stride[d];
    run /= block->count[d];
  }
  return view.at + offset;
}

TASUKI_RARE Word load_strided(View view, Word at, Word bytes) {
  Word word = 0;
  for (Word i = 0; i < bytes;) {
    Word together = 0;
    const Byte* const from = place_of(view, at + i, together);
    const Word now = together < bytes - i ? together : bytes - i;
    word |= load_bytes(from, now) << 8 * i;
    i += now < 8 ? now : 8;
  }
  return word;
}
TASUKI_RARE void store_strided(View view, Word at, Word word, Word bytes) {
  for (Word i = 0; i < bytes;) {
    Word together = 0;
    Byte* const to = place_of(view, at + i, together);
    const Word now = together < bytes - i ? together : bytes - i;
    store_bytes(to, word >> 8 * i, now);
    i += now < 8 ? now : 8;
  }
}

/// Word i of a message of so many bytes.
TASUKI_DEVICE Word load_word(const View& view, Word i, Word bytes) {
  const Word left = bytes - 8 * i;
  if (view.blocks == nullptr) return load_bytes(view.at + 8 * i, left);
  return load_strided(view, 8 * i, left < 8 ? left : 8);
}
TASUKI_DEVICE void store_word(const View& view, Word i, Word word, Word bytes) {
  const Word left = bytes - 8 * i;
  if (view.blocks == nullptr) return store_bytes(view.at + 8 * i, word, left);
  store_strided(view, 8 * i, word, left < 8 ? left : 8);
}

/// By the group, without a `sync` before or after: out of a view, into one.
template <class Group>
TASUKI_DEVICE void gather(const Group& group, Byte* to, const View& from, Word bytes) {
  if (from.blocks == nullptr) return copy(group, to, from.at, bytes);
  for (Word i = static_cast<Word>(group.thread()); 8 * i < bytes; i += static_cast<Word>(group.threads()))
    store_bytes(to + 8 * i, load_word(from, i, bytes), bytes - 8 * i);
}
template <class Group>
TASUKI_DEVICE void scatter(const Group& group, const View& to, const Byte* from, Word bytes) {
  if (to.blocks == nullptr) return pull(group, to.at, from, bytes);
  for (Word i = static_cast<Word>(group.thread()); 8 * i < bytes; i += static_cast<Word>(group.threads()))
    store_word(to, i, load_bytes(from + 8 * i, bytes - 8 * i), bytes);
}

}  // namespace detail

}  // namespace tasuki::device
