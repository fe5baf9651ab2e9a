// The addresses of a thread's units in a tile of a strided copy (program.cuh, jobs.cuh).
#pragma once

#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/warp.cuh"

namespace tasuki::device::lowered {

/// A tile of `copy` as one thread sees it: the units first, first + 32, ... before `end`.
struct GpuTile {
  const GpuCopy& copy;
  const GpuDim* dims;
  std::uint32_t first;
  std::uint32_t end;
  const std::byte* src;
  std::byte* dst;

  TASUKI_DEVICE const std::byte* from() const { return src + copy.src_offset; }
  TASUKI_DEVICE std::byte* to() const { return dst + copy.dst_offset; }
  /// Calls `inner` for every dimension but the outermost, which `outermost` gets, from the innermost on.
  template <class Inner, class Outermost>
  TASUKI_DEVICE void each_dim(const Inner& inner, const Outermost& outermost) const {
    const int last = copy.dims - 1;
    TASUKI_NO_UNROLL
    for (int d = 0; d < last; ++d) inner(dims[d]);
    outermost(dims[last]);
  }

  static constexpr bool kLists = true;
  TASUKI_DEVICE int listed() const { return copy.listed; }
  /// Of the outermost dimension.
  TASUKI_DEVICE std::uint32_t steps() const { return dims[copy.dims - 1].count; }
  TASUKI_DEVICE const std::int32_t* list(int side) const {
    const GpuDim* at = dims + copy.dims;
    if (side == kTarget && (copy.listed & kSource) != 0) at += (steps() + kListedInDim - 1) / kListedInDim;
    return reinterpret_cast<const std::int32_t*>(at);
  }
};

/// The addresses of a thread's units in a tile, at most Most of them, on the sides `kSides`; strides are in Units. Goes
/// through the dimensions for all units together, so that the divisions of different units do not wait for each other.
template <class Unit, int Most, int kSides>
class TilePlaces {
 public:
  int count;  // of the units that exist

  template <class Tile>
  TASUKI_DEVICE explicit TilePlaces(const Tile& t) : from_(t.from()), to_(t.to()) {
    std::uint32_t n[Most];
    TASUKI_UNROLL
    for (int j = 0; j < Most; ++j) {
      n[j] = t.first + 32 * j;
      src_[j] = 0;
      dst_[j] = 0;
    }
    count = t.first < t.end ? static_cast<int>((t.end - t.first + 31) / 32) : 0;
    t.each_dim(Inner{*this, n}, Outermost{*this, n});
    if constexpr (Tile::kLists) {
      if (t.listed() != 0) add_lists(t, n);
    }
  }

  TASUKI_DEVICE const std::byte* src(int j) const { return from_ + static_cast<std::int64_t>(src_[j]) * sizeof(Unit); }
  TASUKI_DEVICE std::byte* dst(int j) const { return to_ + static_cast<std::int64_t>(dst_[j]) * sizeof(Unit); }

 private:
  // What is done for each dimension, with what is left of the units' numbers. Not lambdas: NVRTC before 13.2 takes
  // those with `auto` here for functions of the host.
  struct Inner {
    TilePlaces& places;
    std::uint32_t (&n)[Most];
    template <class Dim>
    TASUKI_DEVICE void operator()(const Dim dim) const {
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) {
        const std::uint32_t next = high_product(n[j], dim.magic) >> dim.shift;
        places.step(j, n[j] - next * dim.count, dim);
        n[j] = next;
      }
    }
  };
  struct Outermost {
    TilePlaces& places;
    std::uint32_t (&n)[Most];
    template <class Dim>
    TASUKI_DEVICE void operator()(const Dim dim) const {
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) places.step(j, n[j], dim);
    }
  };

  template <class Dim>
  TASUKI_DEVICE void step(int j, std::uint32_t at, const Dim& dim) {
    const auto steps = static_cast<std::int32_t>(at);
    if constexpr ((kSides & kSource) != 0) src_[j] += steps * dim.src_stride;
    if constexpr ((kSides & kTarget) != 0) dst_[j] += steps * dim.dst_stride;
  }

  // `n`: the units' steps in the outermost dimension. Those beyond the copy's end have the last one's place.
  template <class Tile>
  TASUKI_DEVICE void add_lists(const Tile& t, const std::uint32_t (&n)[Most]) {
    const std::uint32_t last = t.steps() - 1;
    if ((kSides & kSource & t.listed()) != 0) {
      const std::int32_t* const list = t.list(kSource);
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) src_[j] += list[least(n[j], last)];
    }
    if ((kSides & kTarget & t.listed()) != 0) {
      const std::int32_t* const list = t.list(kTarget);
      TASUKI_UNROLL
      for (int j = 0; j < Most; ++j) dst_[j] += list[least(n[j], last)];
    }
  }

  const std::byte* from_;
  std::byte* to_;
  std::int32_t src_[Most];
  std::int32_t dst_[Most];
};

}  // namespace tasuki::device::lowered
