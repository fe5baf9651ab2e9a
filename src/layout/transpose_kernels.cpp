// Transposes, tile by tile: see transpose_kernels.hpp.
//
// A row of the destination takes one number from each of many lines of the source. Going row by row, a line of the
// source is evicted before its next number is wanted, and is read again for each. A tile has as many rows and columns
// as numbers fit into a line, so each of its lines, on both sides, is touched once. Tiles are taken by squares, of
// which both sides need so few pages that their translations stay at hand.
#include "layout/transpose_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include "layout/nest_loop.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kLine = 64;    // a cache line
constexpr std::int64_t kSquare = 32;  // numbers on a side of a square
constexpr std::int64_t kLeast = 16;   // numbers on a side: smaller ones lie in the nearest cache whatever the order

template <std::int64_t Bytes>
[[gnu::always_inline]] inline void move_number(const std::byte* src, std::byte* dst) {
  std::byte number[Bytes];
  std::memcpy(number, src, Bytes);
  std::memcpy(dst, number, Bytes);
}

// Two dimensions: along `across` the destination is dense, along `down` the source.
template <std::int64_t Bytes>
void transpose(const StridedCopy::Dim& down, const StridedCopy::Dim& across, const std::byte* __restrict src,
               std::byte* __restrict dst) {
  constexpr std::int64_t kTile = kLine / Bytes;
  const std::int64_t from = across.src_stride;
  const std::int64_t to = down.dst_stride;
  const auto tile = [&](std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns) {
    const std::byte* const its_src = src + row * Bytes + column * from;
    std::byte* const its_dst = dst + row * to + column * Bytes;
    if (rows == kTile && columns == kTile) {
      for (std::int64_t i = 0; i < kTile; ++i)
#pragma GCC unroll 16
        for (std::int64_t j = 0; j < kTile; ++j)
          move_number<Bytes>(its_src + i * Bytes + j * from, its_dst + i * to + j * Bytes);
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        move_number<Bytes>(its_src + i * Bytes + j * from, its_dst + i * to + j * Bytes);
  };
  for (std::int64_t row = 0; row < down.count; row += kSquare) {
    const std::int64_t rows_end = std::min(row + kSquare, down.count);
    for (std::int64_t column = 0; column < across.count; column += kSquare) {
      const std::int64_t columns_end = std::min(column + kSquare, across.count);
      for (std::int64_t j = column; j < columns_end; j += kTile)
        for (std::int64_t i = row; i < rows_end; i += kTile)
          tile(i, j, std::min(kTile, rows_end - i), std::min(kTile, columns_end - j));
    }
  }
}

template <std::int64_t Bytes>
void copy_transpose(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  const Turned dims = *turned(copy);
  const std::span<const StridedCopy::Dim> all = copy.nest();
  std::array<StridedCopy::Dim, kMaxDims> others;
  std::size_t count = 0;
  for (const StridedCopy::Dim& dim : all)
    if (&dim != &all[dims.down] && &dim != &all[dims.across]) others[count++] = dim;
  const StridedCopy::Dim down = all[dims.down];
  const StridedCopy::Dim across = all[dims.across];
  for_each_block<false>(Nest{copy.src_offset, copy.dst_offset, {others.data(), count}}, src, dst,
                        [&](const std::byte* from, std::byte* to) { transpose<Bytes>(down, across, from, to); });
}

bool far(std::int64_t stride) {
  return std::abs(stride) > kLine;
}

}  // namespace

std::optional<Turned> turned(const StridedCopy& copy) {
  if (copy.listed() || (copy.block != 4 && copy.block != 8 && copy.block != 16)) return {};
  Turned found{-1, -1};
  for (std::int32_t d = 0; d < copy.ndims; ++d) {
    const auto [count, src_stride, dst_stride] = copy.dims[static_cast<std::size_t>(d)];
    if (count < kLeast) continue;
    if (src_stride == copy.block && far(dst_stride)) found.down = d;
    if (dst_stride == copy.block && far(src_stride)) found.across = d;
  }
  if (found.down < 0 || found.across < 0) return {};
  return found;
}

CopyFunction select_transpose(const StridedCopy& copy) {
  if (!turned(copy)) return nullptr;
  if (copy.block == 4) return copy_transpose<4>;
  return copy.block == 8 ? copy_transpose<8> : copy_transpose<16>;
}

}  // namespace tasuki
