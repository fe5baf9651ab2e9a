// The loop nest that all kernels share: the two innermost dimensions are plain loops, the others an odometer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "layout/cut.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// One row. Source and destination do not overlap, so loads may run before earlier stores.
template <bool Unroll, class BlockBody>
[[gnu::always_inline]] inline void for_each_in_row(const StridedCopy::Dim& row, const std::byte* __restrict src,
                                                   std::byte* __restrict dst, const BlockBody& block) {
  if constexpr (Unroll) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < row.count; ++i) block(src + i * row.src_stride, dst + i * row.dst_stride);
  } else {
    for (std::int64_t i = 0; i < row.count; ++i) block(src + i * row.src_stride, dst + i * row.dst_stride);
  }
}

/// Calls `block(source, destination)` for every block of `copy`, in order. Always inlined, so that each kernel gets its
/// own loops around its own block. The copy has no lists. `Unroll` is for blocks of a few instructions, not for blocks
/// that are a call.
template <bool Unroll = true, class BlockBody>
[[gnu::always_inline]] inline void for_each_block(const StridedCopy& copy, const std::byte* src, std::byte* dst,
                                                  const BlockBody& block) {
  src += copy.src_offset;
  dst += copy.dst_offset;
  if (copy.ndims == 0) return block(src, dst);
  if (copy.blocks() == 0) return;
  constexpr StridedCopy::Dim kOnce{1, 0, 0};
  const StridedCopy::Dim inner = copy.dims[copy.ndims - 1];
  const StridedCopy::Dim middle = copy.ndims > 1 ? copy.dims[copy.ndims - 2] : kOnce;
  std::array<std::int64_t, kMaxDims> index{};
  for (;;) {
    for (std::int64_t row = 0; row < middle.count; ++row) {
      for_each_in_row<Unroll>(inner, src + row * middle.src_stride, dst + row * middle.dst_stride, block);
    }
    int dim = copy.ndims - 3;
    for (; dim >= 0; --dim) {
      const StridedCopy::Dim& outer = copy.dims[dim];
      src += outer.src_stride;
      dst += outer.dst_stride;
      if (++index[dim] < outer.count) break;
      src -= outer.count * outer.src_stride;
      dst -= outer.count * outer.dst_stride;
      index[dim] = 0;
    }
    if (dim < 0) return;
  }
}

/// The same for offsets, and for copies that may have lists: calls `block(source offset, destination offset)` for every
/// block, in order.
template <class BlockBody>
inline void for_each_offset(const StridedCopy& copy, const BlockBody& block) {
  if (copy.blocks() == 0) return;
  if (copy.listed()) {
    StridedCopy step = step_of(copy, 0);
    for (std::int64_t i = 0; i < copy.dims[0].count; ++i) {
      step.src_offset = copy.src_of_step(i);
      step.dst_offset = copy.dst_of_step(i);
      for_each_offset(step, block);
    }
    return;
  }
  std::array<std::int64_t, kMaxDims> index{};
  std::int64_t src = copy.src_offset;
  std::int64_t dst = copy.dst_offset;
  for (;;) {
    block(src, dst);
    int dim = copy.ndims - 1;
    for (; dim >= 0; --dim) {
      const StridedCopy::Dim& d = copy.dims[static_cast<std::size_t>(dim)];
      src += d.src_stride;
      dst += d.dst_stride;
      if (++index[static_cast<std::size_t>(dim)] < d.count) break;
      src -= d.count * d.src_stride;
      dst -= d.count * d.dst_stride;
      index[static_cast<std::size_t>(dim)] = 0;
    }
    if (dim < 0) return;
  }
}

}  // namespace tasuki
