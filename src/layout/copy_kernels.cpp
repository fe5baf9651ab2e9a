// The copy kernels: one for each class of block sizes, so that small blocks do not cost a call to memcpy each.
//
// Measurements ruled out two things. Wide vectors for blocks above 64 B: the C library's memcpy already uses the widest
// registers that the machine has, and wins. Software prefetch for single numbers far apart: it gains a tenth when
// everything comes from memory and costs a quarter when a face is in the cache, as it mostly is.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "layout/block_moves.hpp"
#include "layout/kernel_trial.hpp"
#include "layout/list_kernels.hpp"
#include "layout/nest_loop.hpp"
#include "layout/transpose_kernels.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kLine = kCacheLine;
constexpr std::int64_t kPage = 4096;  // bytes for which one entry of the address translation cache is enough
constexpr std::int64_t kLargestFixed = 256;

template <std::int64_t Bytes>
void copy_fixed(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  for_each_block<(Bytes <= kLine)>(copy, src, dst,
                                   [](const std::byte* from, std::byte* to) { move_block<Bytes>(from, to); });
}

// Blocks of Head to Head + Tail bytes, as two pieces that overlap.
template <std::int64_t Head, std::int64_t Tail>
void copy_two_pieces(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  const std::int64_t tail = copy.block - Tail;
  for_each_block(copy, src, dst, [tail](const std::byte* from, std::byte* to) {
    move_block<Head>(from, to);
    move_block<Tail>(from + tail, to + tail);
  });
}

// Rows of small numbers gathered into consecutive ones: several loads for one store.
template <std::int64_t Bytes>
void copy_gather(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  using Number =
      std::conditional_t<Bytes == 4, float, BlockWord<Bytes>>;  // floats join faster, and their bits do not change
  constexpr std::int64_t kLanes = 16 / Bytes;
  typedef Number Numbers __attribute__((vector_size(16)));
  Nest rows = nest_of(copy);
  const StridedCopy::Dim inner = rows.dims.back();
  rows.dims = rows.dims.first(rows.dims.size() - 1);
  const std::int64_t count = inner.count;
  const std::int64_t stride = inner.src_stride;
  for_each_block<false>(rows, src, dst, [count, stride](const std::byte* from, std::byte* to) {
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      Numbers lanes{};
#pragma GCC unroll 8
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        Number number;
        std::memcpy(&number, from, Bytes);
        lanes[lane] = number;
        from += stride;
      }
      std::memcpy(to + i * Bytes, &lanes, sizeof lanes);
    }
    for (; i < count; ++i, from += stride) move_block<Bytes>(from, to + i * Bytes);
  });
}

// Numbers that are neighbours on one side, two by two: both go through one register.
template <std::int64_t Bytes>
using Pair [[gnu::vector_size(2 * Bytes)]] = BlockWord<Bytes>;

enum class PairsLie : std::uint8_t { in_destination, in_source };

template <std::int64_t Bytes, PairsLie Where>
void copy_pairs(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  Nest pairs = nest_of(copy);
  const StridedCopy::Dim two = pairs.dims.back();
  pairs.dims = pairs.dims.first(pairs.dims.size() - 1);
  const std::int64_t apart = Where == PairsLie::in_destination ? two.src_stride : two.dst_stride;
  for_each_block(pairs, src, dst, [apart](const std::byte* from, std::byte* to) {
    if constexpr (Bytes == 16) {
      constexpr bool gathers = Where == PairsLie::in_destination;
      move_block<16>(from, to);
      move_block<16>(from + (gathers ? apart : 16), to + (gathers ? 16 : apart));
    } else if constexpr (Where == PairsLie::in_destination) {
      BlockWord<Bytes> first;
      BlockWord<Bytes> second;
      std::memcpy(&first, from, Bytes);
      std::memcpy(&second, from + apart, Bytes);
      const Pair<Bytes> both{first, second};
      std::memcpy(to, &both, sizeof both);
    } else {
      Pair<Bytes> both;
      std::memcpy(&both, from, sizeof both);
      const BlockWord<Bytes> first = both[0];
      const BlockWord<Bytes> second = both[1];
      std::memcpy(to, &first, Bytes);
      std::memcpy(to + apart, &second, Bytes);
    }
  });
}

template <std::int64_t Bytes>
CopyFunction pairs_of(const StridedCopy::Dim& two) {
  if (two.dst_stride == Bytes) return copy_pairs<Bytes, PairsLie::in_destination>;
  if (two.src_stride == Bytes) return copy_pairs<Bytes, PairsLie::in_source>;
  return nullptr;
}

// The function for blocks that come in pairs, which neighbour each other on one side; null for other copies.
CopyFunction select_pairs(const StridedCopy& copy) {
  const StridedCopy::Dim two = copy.dims[copy.ndims - 1];
  if (copy.ndims < 2 || two.count != 2) return nullptr;
  if (copy.block == 4) return pairs_of<4>(two);
  if (copy.block == 8) return pairs_of<8>(two);
  return copy.block == 16 ? pairs_of<16>(two) : nullptr;
}

void copy_wide(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  const auto bytes = static_cast<std::size_t>(copy.block);
  for_each_block<false>(copy, src, dst,
                        [bytes](const std::byte* from, std::byte* to) { std::memcpy(to, from, bytes); });
}

void copy_nothing(const StridedCopy&, const std::byte*, std::byte*) {}

void copy_contiguous(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  std::memcpy(dst + copy.dst_offset, src + copy.src_offset, static_cast<std::size_t>(copy.block));
}

// Stores past the cache, for destinations that are not in it.
void copy_streaming(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  for_each_block<false>(copy, src, dst,
                        [bytes = copy.block](const std::byte* from, std::byte* to) { stream_block(from, to, bytes); });
  end_streaming();
}

// Whether this processor is faster with few accesses in flight, for numbers that are whole pages apart: on the source's
// side (`gather`) or on the destination's.
bool few_win(bool gather) {
  const auto trial = [](std::int64_t src_stride, std::int64_t dst_stride) {
    StridedCopy copy;
    copy.block = 8;
    copy.ndims = 1;
    copy.dims[0] = {256, src_stride, dst_stride};
    return clearly_faster(copy_wide, copy_fixed<8>, copy);
  };
  static const bool when_gathered = trial(2 * kPage, 8);
  static const bool when_scattered = trial(8, 2 * kPage);
  return gather ? when_gathered : when_scattered;
}

// Long rows of numbers a page or more apart on one side and dense on the other. Every number costs a page lookup, and
// numbers that are whole pages apart all fall into one set of the cache. A call to memcpy for each number is slow
// enough to keep few of them in flight. That is up to twice as fast as the plain loop on some processors (EPYC), and
// half as fast on others (Xeon). Scattered stores suffer only from the cache set.
bool too_many_in_flight(const StridedCopy& copy) {
  constexpr std::int64_t kMoreThanCacheWays = 64;
  const auto [count, src_stride, dst_stride] = copy.dims[copy.ndims - 1];
  if (count < kMoreThanCacheWays || copy.block > kLine / 2) return false;
  if (dst_stride == copy.block) return std::abs(src_stride) >= kPage && few_win(true);
  return src_stride == copy.block && dst_stride != 0 && dst_stride % kPage == 0 && few_win(false);
}

// Blocks of a few cache lines: memcpy wins if they lie close together. Plain moves win, up to twofold, if each block is
// on a new page.
std::int64_t largest_without_memcpy(const StridedCopy& copy) {
  const auto [count, src_stride, dst_stride] = copy.dims[copy.ndims - 1];
  const bool far = std::abs(src_stride) >= kPage || std::abs(dst_stride) >= kPage;
  return far && copy.block % 8 == 0 ? kLargestFixed : kLine;
}

// copy_fixed for block sizes that are multiples of 8.
template <std::int64_t... I>
constexpr auto fixed_by_eights(std::integer_sequence<std::int64_t, I...>) {
  return std::array<CopyFunction, sizeof...(I)>{copy_fixed<8 * (I + 1)>...};
}
constexpr auto kFixedByEights = fixed_by_eights(std::make_integer_sequence<std::int64_t, kLargestFixed / 8>());

}  // namespace

CopyFunction select_copy(const StridedCopy& copy, CopyHint hint) {
  const std::int64_t block = copy.block;
  if (block == 0) return copy_nothing;
  if (copy.listed()) return select_list_copy(copy, hint);
  if (hint == CopyHint::streaming && block >= kLine) return copy_streaming;
  if (copy.ndims == 0) return copy_contiguous;
  if (const CopyFunction transpose = select_transpose(copy)) return transpose;
  if (block > largest_without_memcpy(copy)) return copy_wide;
  if (too_many_in_flight(copy)) return copy_wide;
  if (const CopyFunction pairs = select_pairs(copy)) return pairs;
  const bool gather = copy.dims[copy.ndims - 1].dst_stride == block;
  if (block == 1) return copy_fixed<1>;
  if (block == 2) return gather ? copy_gather<2> : copy_fixed<2>;
  if (block == 4) return gather ? copy_gather<4> : copy_fixed<4>;
  if (block == 3) return copy_fixed<3>;
  if (block == 12) return copy_fixed<12>;
  if (block % 8 == 0) return kFixedByEights[static_cast<std::size_t>(block / 8 - 1)];
  if (block < 8) return copy_two_pieces<4, 4>;
  if (block < 16) return copy_two_pieces<8, 8>;
  if (block < 32) return copy_two_pieces<16, 16>;
  if (block < 48) return copy_two_pieces<32, 16>;
  return copy_two_pieces<48, 16>;
}

}  // namespace tasuki
