// The loop nest that all kernels share: the two innermost dimensions are plain loops, the others an odometer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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

/// A nest of places as loops walk through it. It refers to the dimensions of a copy, or to some of them.
struct Nest {
  std::int64_t src_offset = 0;
  std::int64_t dst_offset = 0;
  std::span<const StridedCopy::Dim> dims;

  bool empty() const {
    return std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.count == 0; });
  }
};
/// Of a copy without lists. As many of the outermost dimensions as `outer` says are left out: the nest is in their
/// first step.
inline Nest nest_of(const StridedCopy& copy, std::size_t outer = 0) {
  return {copy.src_offset, copy.dst_offset, copy.nest().subspan(outer)};
}
/// Step `i` of the outermost dimension of a copy, which may have lists.
inline Nest nest_of_step(const StridedCopy& copy, std::int64_t i) {
  return {copy.src_of_step(i), copy.dst_of_step(i), copy.nest().subspan(1)};
}

/// Calls `block(source, destination)` for every block of the nest, in order. Always inlined, so that each kernel gets
/// its own loops around its own block. `Unroll` is for blocks of a few instructions, not for blocks that are a call.
template <bool Unroll = true, class BlockBody>
[[gnu::always_inline]] inline void for_each_block(const Nest& nest, const std::byte* src, std::byte* dst,
                                                  const BlockBody& block) {
  src += nest.src_offset;
  dst += nest.dst_offset;
  const std::span<const StridedCopy::Dim> dims = nest.dims;
  if (dims.empty()) return block(src, dst);
  if (nest.empty()) return;
  constexpr StridedCopy::Dim kOnce{1, 0, 0};
  const StridedCopy::Dim inner = dims.back();
  const StridedCopy::Dim middle = dims.size() > 1 ? dims[dims.size() - 2] : kOnce;
  std::array<std::int64_t, kMaxDims> index{};
  for (;;) {
    for (std::int64_t row = 0; row < middle.count; ++row) {
      for_each_in_row<Unroll>(inner, src + row * middle.src_stride, dst + row * middle.dst_stride, block);
    }
    int dim = static_cast<int>(dims.size()) - 3;
    for (; dim >= 0; --dim) {
      const StridedCopy::Dim& outer = dims[dim];
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

/// Of a copy without lists.
template <bool Unroll = true, class BlockBody>
[[gnu::always_inline]] inline void for_each_block(const StridedCopy& copy, const std::byte* src, std::byte* dst,
                                                  const BlockBody& block) {
  for_each_block<Unroll>(nest_of(copy), src, dst, block);
}

/// The same for offsets: calls `block(source offset, destination offset)` for every block, in order.
template <class BlockBody>
inline void for_each_offset(const Nest& nest, const BlockBody& block) {
  if (nest.empty()) return;
  std::array<std::int64_t, kMaxDims> index{};
  std::int64_t src = nest.src_offset;
  std::int64_t dst = nest.dst_offset;
  for (;;) {
    block(src, dst);
    int dim = static_cast<int>(nest.dims.size()) - 1;
    for (; dim >= 0; --dim) {
      const StridedCopy::Dim& d = nest.dims[static_cast<std::size_t>(dim)];
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

/// And for copies that may have lists.
template <class BlockBody>
inline void for_each_offset(const StridedCopy& copy, const BlockBody& block) {
  if (!copy.listed()) return for_each_offset(nest_of(copy), block);
  for (std::int64_t i = 0; i < copy.dims[0].count; ++i) for_each_offset(nest_of_step(copy, i), block);
}

}  // namespace tasuki
