// Kernels for copies with lists. The steps of the list are the innermost loop: what lies inside a step, such as the
// levels of a cell that are far apart, is the outer one.
#include "layout/list_kernels.hpp"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "layout/block_moves.hpp"
#include "layout/nest_loop.hpp"

namespace tasuki {
namespace {

// Where step i lies: by a stride, or by a list of either form.
struct AtStride {
  std::int64_t stride;
  std::int64_t operator()(std::int64_t i) const { return i * stride; }
};
template <class Number>
struct AtListed {
  const Number* offsets;
  std::int64_t operator()(std::int64_t i) const { return offsets[i]; }
};
using Narrow = AtListed<std::int32_t>;
using Wide64 = AtListed<std::int64_t>;

template <class At>
At steps_at(const OffsetList& list, std::int64_t stride) {
  if constexpr (std::is_same_v<At, AtStride>)
    return {stride};
  else if constexpr (std::is_same_v<At, Narrow>)
    return {list.narrow()};
  else
    return {list.wide()};
}

// Calls `row(source, destination)` for every place inside a step.
template <class Row>
[[gnu::always_inline]] inline void for_each_inside(const StridedCopy& copy, const std::byte* src, std::byte* dst,
                                                   const Row& row) {
  if (copy.ndims == 1) return row(src + copy.src_offset, dst + copy.dst_offset);
  for_each_block<false>(nest_of(copy, 1), src, dst, row);
}

constexpr std::int64_t kMostPrefetched = 1 << 20;  // bytes of a copy; larger ones were slower with prefetched stores

// Blocks of a fixed size. Several are loaded before the first is stored: a store might change the list, for all that
// the compiler knows.
template <std::int64_t Bytes, class From, class To>
void copy_numbers(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  constexpr std::int64_t kAtOnce = Bytes <= 16 ? 8 : 1;
  constexpr std::int64_t kAhead = 16 * kCacheLine / Bytes;  // numbers
  const auto from_at = steps_at<From>(copy.src_list, copy.dims[0].src_stride);
  const auto to_at = steps_at<To>(copy.dst_list, copy.dims[0].dst_stride);
  const std::int64_t count = copy.dims[0].count;
  for_each_inside(copy, src, dst, [=](const std::byte* from, std::byte* to) {
    std::int64_t i = 0;
    if constexpr (kAtOnce > 1) {
      for (; i + kAtOnce <= count; i += kAtOnce) {
        std::array<BlockWord<Bytes>, kAtOnce> words;
        std::array<std::int64_t, kAtOnce> places;
        if constexpr (std::is_same_v<To, AtStride>)
          if (i + kAhead < count) prefetch_for_store(to + to_at(i + kAhead));
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < kAtOnce; ++k) {
          std::memcpy(&words[static_cast<std::size_t>(k)], from + from_at(i + k), Bytes);
          places[static_cast<std::size_t>(k)] = to_at(i + k);
        }
#pragma GCC unroll 8
        for (std::int64_t k = 0; k < kAtOnce; ++k)
          std::memcpy(to + places[static_cast<std::size_t>(k)], &words[static_cast<std::size_t>(k)], Bytes);
      }
    }
    for (; i < count; ++i) move_block<Bytes>(from + from_at(i), to + to_at(i));
  });
}

// Blocks of any size. Those to come are fetched early: no hardware foresees where a list goes.
template <bool PastCaches, class From, class To>
void copy_blocks(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  constexpr std::int64_t kAhead = 2;  // blocks
  const auto from_at = steps_at<From>(copy.src_list, copy.dims[0].src_stride);
  const auto to_at = steps_at<To>(copy.dst_list, copy.dims[0].dst_stride);
  const std::int64_t count = copy.dims[0].count;
  const std::int64_t bytes = copy.block;
  const bool prefetches = !PastCaches && copy.bytes() <= kMostPrefetched;
  for_each_inside(copy, src, dst, [=](const std::byte* from, std::byte* to) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (i + kAhead < count) {
        const std::byte* const next = from + from_at(i + kAhead);
        for (std::int64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(next + at);
        const std::byte* const there = to + to_at(i + kAhead);
        for (std::int64_t at = 0; prefetches && at < bytes; at += kCacheLine) prefetch_for_store(there + at);
      }
      if constexpr (PastCaches)
        stream_block(from + from_at(i), to + to_at(i), bytes);
      else
        std::memcpy(to + to_at(i), from + from_at(i), static_cast<std::size_t>(bytes));
    }
  });
  if constexpr (PastCaches) end_streaming();
}

template <class From, class To>
CopyFunction select_by_size(const StridedCopy& copy, CopyHint hint) {
  if (hint == CopyHint::streaming && copy.block >= kCacheLine) return copy_blocks<true, From, To>;
  switch (copy.block) {
    case 2:
      return copy_numbers<2, From, To>;
    case 4:
      return copy_numbers<4, From, To>;
    case 8:
      return copy_numbers<8, From, To>;
    case 16:
      return copy_numbers<16, From, To>;
    case 24:
      return copy_numbers<24, From, To>;
    case 32:
      return copy_numbers<32, From, To>;
    case 64:
      return copy_numbers<64, From, To>;
    default:
      return copy_blocks<false, From, To>;
  }
}

template <class From>
CopyFunction select_by_destination(const StridedCopy& copy, CopyHint hint) {
  if (copy.dst_list.wide() != nullptr) return select_by_size<From, Wide64>(copy, hint);
  if (copy.dst_list.narrow() != nullptr) return select_by_size<From, Narrow>(copy, hint);
  return select_by_size<From, AtStride>(copy, hint);
}

}  // namespace

CopyFunction select_list_copy(const StridedCopy& copy, CopyHint hint) {
  if (copy.src_list.wide() != nullptr) return select_by_destination<Wide64>(copy, hint);
  if (copy.src_list.narrow() != nullptr) return select_by_destination<Narrow>(copy, hint);
  return select_by_destination<AtStride>(copy, hint);
}

}  // namespace tasuki
