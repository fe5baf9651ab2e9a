// LL lines (kLLLineBytes): how a warp fills them with the words of a strided copy, and unpacks them as they
// arrive.
//
// A line is 32 pieces of 16 bytes, one for each thread of a warp. A thread stores or loads a piece at once. The last
// byte of a piece is the flag, the lowest byte of the epoch's number. One byte is enough to distinguish this epoch's
// piece from what was there before: every epoch writes the same pieces, and a ring holds fewer than 256 epochs.
//
// Thread i has words i, 32 + i and 64 + i of the line in its piece, so that neighbouring threads load neighbouring
// words, and bytes 3 * i to 3 * i + 2 of the last 24 words.
#pragma once

#include "tasuki/kernel/impl/places.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device::lowered {

constexpr int kLineParts = 4;             // words of a line that a thread moves; threads 24 to 31 move one less
constexpr std::uint32_t kLastWords = 96;  // words before this one lie in one piece; later ones are spread over two

#ifdef __CUDACC__
TASUKI_DEVICE void store_piece(std::byte* to, const uint4& piece) {
  const std::uint64_t low = piece.x | static_cast<std::uint64_t>(piece.y) << 32;
  const std::uint64_t high = piece.z | static_cast<std::uint64_t>(piece.w) << 32;
  asm volatile("{ .reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.sys.global.b128 [%0], q; }" ::"l"(to), "l"(low),
               "l"(high)
               : "memory");
}

TASUKI_DEVICE uint4 load_piece(const std::byte* from) {
  std::uint64_t low;
  std::uint64_t high;
  asm volatile("{ .reg .b128 q; ld.relaxed.sys.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }"
               : "=l"(low), "=l"(high)
               : "l"(from)
               : "memory");
  return make_uint4(static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32));
}
#else  // tests run warps on a processor, and define these
void store_piece(std::byte* to, const uint4& piece);
uint4 load_piece(const std::byte* from);
#endif

TASUKI_DEVICE bool came(const uint4& piece, std::uint32_t flag) {
  return piece.w >> 24 == (flag & 0xff);
}

// By a whole warp: this thread's piece of a line, made from the words that the threads have loaded.
TASUKI_DEVICE uint4 piece_of(const std::uint32_t (&word)[kLineParts], std::uint32_t flag) {
  const std::uint32_t at = 3 * lane();
  const std::uint32_t low = __shfl_sync(~0u, word[3], static_cast<int>(at / 4));
  const std::uint32_t high = __shfl_sync(~0u, word[3], static_cast<int>(at / 4 + 1));
  const std::uint32_t last = __funnelshift_r(low, high, at % 4 * 8) & 0xffffff;
  return make_uint4(word[0], word[1], word[2], last | flag << 24);
}

// The word that begins with byte `rest` of the last three bytes of one piece and continues in the next piece's.
TASUKI_DEVICE std::uint32_t joined(std::uint32_t one, std::uint32_t next, std::uint32_t rest) {
  return (one & 0xffffff) >> 8 * rest | next << 8 * (3 - rest);
}

// By a whole warp: this thread's words of a line, from the pieces that the threads have loaded.
TASUKI_DEVICE void words_of(const uint4& piece, std::uint32_t (&word)[kLineParts]) {
  const std::uint32_t at = 4 * lane();
  const std::uint32_t one = __shfl_sync(~0u, piece.w, static_cast<int>(at / 3));
  const std::uint32_t next = __shfl_sync(~0u, piece.w, static_cast<int>(at / 3 + 1));
  word[0] = piece.x;
  word[1] = piece.y;
  word[2] = piece.z;
  word[3] = joined(one, next, at % 3);
}

// A tile of up to Most lines of `copy`, from line `first` on, moved by a whole warp.
struct GpuLines {
  const GpuCopy& copy;
  const GpuDim* dims;
  std::uint32_t first;
  std::uint32_t lines;
  const std::byte* src;
  std::byte* dst;

  // This thread's words of the tile's line j.
  TASUKI_DEVICE GpuTile line(int j) const {
    const std::uint32_t begin = (first + j) * kLineWords;
    return {copy, dims, begin + lane(), least(copy.units, begin + kLineWords), src, dst};
  }
  TASUKI_DEVICE const std::byte* from() const { return src + copy.src_offset; }
  TASUKI_DEVICE std::byte* to() const { return dst + copy.dst_offset; }
  // Whether this thread has words in line j.
  TASUKI_DEVICE bool has(int j) const { return (first + j) * kLineWords + lane() < copy.units; }
  // Offset of this thread's piece of line j.
  TASUKI_DEVICE std::int64_t piece(int j) const {
    return static_cast<std::int64_t>(first + j) * kLLLineBytes + lane() * 16;
  }
};

template <int Most, class Lines>
TASUKI_DEVICE void fill_lines(const Lines& t, std::uint32_t flag) {
  std::uint32_t word[Most][kLineParts] = {};
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {  // all loads are issued before the first store
    if (j >= t.lines) break;
    const TilePlaces<std::uint32_t, kLineParts, kSource> at(t.line(j));
    TASUKI_UNROLL
    for (int k = 0; k < kLineParts; ++k) {
      if (k < at.count) word[j][k] = *reinterpret_cast<const std::uint32_t*>(at.src(k));
    }
  }
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    if (j >= t.lines) break;
    const uint4 piece = piece_of(word[j], flag);
    if (t.has(j)) store_piece(t.to() + t.piece(j), piece);
  }
}

template <class Places>
TASUKI_DEVICE void store_words(const Places& at, const uint4& piece) {
  std::uint32_t word[kLineParts];
  words_of(piece, word);
  TASUKI_UNROLL
  for (int k = 0; k < kLineParts; ++k) {
    if (k < at.count) *reinterpret_cast<std::uint32_t*>(at.dst(k)) = word[k];
  }
}

// This thread's pieces of the lines of a tile.
template <int Most, class Lines = GpuLines>
struct Pieces {
  const Lines& t;
  std::uint32_t flag;
  uint4 piece[Most];

  // Loads all at once: one after the other, each would cost a latency of its own.
  TASUKI_DEVICE void look() {
    const std::byte* from = t.from();
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      if (j < t.lines) piece[j] = load_piece(from + t.piece(j));
    }
  }
  TASUKI_DEVICE bool missing() const {
    bool any = false;
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) any = any || (j < t.lines && t.has(j) && !came(piece[j], flag));
    return any;
  }
  // After `look`: waits until all have arrived. `more()` is called when one has not and says whether to keep waiting.
  // Returns false, to all threads of the warp, if not all pieces have arrived.
  template <class More>
  TASUKI_DEVICE bool wait(const More& more) {
    bool given_up = false;
    while (!given_up && missing()) {
      given_up = !more();
      look();
    }
    return __any_sync(~0u, given_up) == 0;
  }
};

// Takes words out of lines as they arrive; returns as `Pieces::wait`.
template <int Most, class Lines, class More>
TASUKI_DEVICE bool unpack_lines(const Lines& t, std::uint32_t flag, const More& more) {
  using Places = TilePlaces<std::uint32_t, kLineParts, kTarget>;
  Pieces<Most, Lines> pieces{t, flag, {}};
  pieces.look();
  const Places first(t.line(0));  // computed while the pieces arrive
  if (!pieces.wait(more)) return false;
  store_words(first, pieces.piece[0]);
  TASUKI_UNROLL
  for (int j = 1; j < Most; ++j) {
    if (j < t.lines) store_words(Places(t.line(j)), pieces.piece[j]);
  }
  return true;
}

}  // namespace tasuki::device::lowered
