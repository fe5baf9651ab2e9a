// How a warp moves a tile of a strided copy (gpu_program.hpp): plainly, with additions, and into or out of memory in
// which every word of 4 bytes has the epoch's number, its stamp, beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu_program.hpp"

namespace tasuki {

/// A tile of `copy` as seen by one thread: the units first, first + 32, ... of which there are at most `units`.
struct GpuTile {
  const GpuCopy& copy;
  const GpuDim* dims;
  std::uint32_t first;
  std::uint32_t units;
  const std::byte* src;
  std::byte* dst;
};

// Where a thread's units of a tile are, up to Most of them. Dimension by dimension for all: their divisions do not wait
// for each other.
template <int Most>
struct TilePlaces {
  const std::byte* src[Most];
  std::byte* dst[Most];
  std::uint32_t count;  // of units that there are

  __device__ explicit TilePlaces(const GpuTile& t) {
    std::uint32_t n[Most];
#pragma unroll
    for (int j = 0; j < Most; ++j) {
      n[j] = t.first + 32 * j;
      src[j] = t.src + t.copy.src_offset;
      dst[j] = t.dst + t.copy.dst_offset;
    }
    count = t.first < t.copy.units ? min(t.units, (t.copy.units - t.first + 31) / 32) : 0;
    const int last = t.copy.dims - 1;
#pragma unroll 1
    for (int d = 0; d < last; ++d) {
      const GpuDim dim = t.dims[d];
#pragma unroll
      for (int j = 0; j < Most; ++j) {
        const auto next = static_cast<std::uint32_t>((static_cast<std::uint64_t>(n[j]) * dim.magic) >> dim.shift);
        const std::uint32_t at = n[j] - next * dim.count;
        src[j] += at * dim.src_stride;
        dst[j] += at * dim.dst_stride;
        n[j] = next;
      }
    }
    const GpuDim dim = t.dims[last];
#pragma unroll
    for (int j = 0; j < Most; ++j) {
      src[j] += n[j] * dim.src_stride;
      dst[j] += n[j] * dim.dst_stride;
    }
  }
};

// Moves a tile: all loads go out before the first `store(to, value)`.
template <class Unit, int Most, class Store>
__device__ void move_tile(const GpuTile& t, const Store& store) {
  const TilePlaces<Most> at(t);
  Unit value[Most];
#pragma unroll
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) value[j] = *reinterpret_cast<const Unit*>(at.src[j]);
  }
#pragma unroll
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) store(at.dst[j], value[j]);
  }
}

template <class Unit, int Most>
__device__ void move_tile(const GpuTile& t) {
  move_tile<Unit, Most>(t, [](std::byte* to, const Unit& value) { *reinterpret_cast<Unit*>(to) = value; });
}

// Two words and their stamps, or one: what a single store makes visible (a vector of two pairs may come in halves, so
// each has its stamp).
struct alignas(16) StampedPair {
  std::uint32_t low;
  std::uint32_t low_stamp;
  std::uint32_t high;
  std::uint32_t high_stamp;
};
struct alignas(8) StampedWord {
  std::uint32_t word;
  std::uint32_t stamp;
};

__device__ inline void store_stamped(StampedPair* to, std::uint32_t low, std::uint32_t high, std::uint32_t stamp) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to), "r"(low), "r"(stamp), "r"(high)
               : "memory");
}

__device__ inline void store_stamped(StampedWord* to, std::uint32_t word, std::uint32_t stamp) {
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(word), "r"(stamp) : "memory");
}

__device__ inline StampedPair load_stamped(const StampedPair* from) {
  StampedPair p;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(p.low), "=r"(p.low_stamp), "=r"(p.high), "=r"(p.high_stamp)
               : "l"(from)
               : "memory");
  return p;
}

__device__ inline StampedWord load_stamped(const StampedWord* from) {
  StampedWord w;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(w.word), "=r"(w.stamp) : "l"(from) : "memory");
  return w;
}

// A unit of 4, 8 or 16 bytes as it is in plain and in stamped memory.
template <class Unit>
struct Stamping;

template <>
struct Stamping<std::uint32_t> {
  using Stamped = StampedWord;
  __device__ static void store(std::byte* to, std::uint32_t value, std::uint32_t stamp) {
    store_stamped(reinterpret_cast<StampedWord*>(to), value, stamp);
  }
  __device__ static Stamped load(const std::byte* from) {
    return load_stamped(reinterpret_cast<const StampedWord*>(from));
  }
  __device__ static bool came(const Stamped& s, std::uint32_t stamp) { return s.stamp == stamp; }
  __device__ static std::uint32_t value(const Stamped& s) { return s.word; }
};

template <>
struct Stamping<uint2> {
  using Stamped = StampedPair;
  __device__ static void store(std::byte* to, uint2 value, std::uint32_t stamp) {
    store_stamped(reinterpret_cast<StampedPair*>(to), value.x, value.y, stamp);
  }
  __device__ static Stamped load(const std::byte* from) {
    return load_stamped(reinterpret_cast<const StampedPair*>(from));
  }
  __device__ static bool came(const Stamped& s, std::uint32_t stamp) {
    return s.low_stamp == stamp && s.high_stamp == stamp;
  }
  __device__ static uint2 value(const Stamped& s) { return make_uint2(s.low, s.high); }
};

template <>
struct Stamping<uint4> {
  struct Stamped {
    StampedPair low;
    StampedPair high;
  };
  __device__ static void store(std::byte* to, uint4 value, std::uint32_t stamp) {
    auto* pairs = reinterpret_cast<StampedPair*>(to);
    store_stamped(pairs, value.x, value.y, stamp);
    store_stamped(pairs + 1, value.z, value.w, stamp);
  }
  __device__ static Stamped load(const std::byte* from) {
    const auto* pairs = reinterpret_cast<const StampedPair*>(from);
    return {load_stamped(pairs), load_stamped(pairs + 1)};
  }
  __device__ static bool came(const Stamped& s, std::uint32_t stamp) {
    return Stamping<uint2>::came(s.low, stamp) && Stamping<uint2>::came(s.high, stamp);
  }
  __device__ static uint4 value(const Stamped& s) { return make_uint4(s.low.low, s.low.high, s.high.low, s.high.high); }
};

template <class Unit, int Most>
__device__ void stamp_tile(const GpuTile& t, std::uint32_t stamp) {
  move_tile<Unit, Most>(t, [stamp](std::byte* to, const Unit& value) { Stamping<Unit>::store(to, value, stamp); });
}

// Takes the units as they come. `patient()` says after a look in vain whether to go on. False if not all have come.
template <class Unit, int Most, class Patient>
__device__ bool unstamp_tile(const GpuTile& t, std::uint32_t stamp, const Patient& patient) {
  using Stamps = Stamping<Unit>;
  const TilePlaces<Most> at(t);
  if (at.count == 0) return true;
  std::uint32_t missing = (1u << at.count) - 1;  // a bit a unit
  for (;;) {
    typename Stamps::Stamped seen[Most];
#pragma unroll
    for (int j = 0; j < Most; ++j) seen[j] = Stamps::load(j < at.count ? at.src[j] : at.src[0]);  // all at once
#pragma unroll
    for (int j = 0; j < Most; ++j) {
      const std::uint32_t bit = 1u << j;
      if ((missing & bit) == 0 || !Stamps::came(seen[j], stamp)) continue;
      *reinterpret_cast<Unit*>(at.dst[j]) = Stamps::value(seen[j]);
      missing &= ~bit;
    }
    if (missing == 0) return true;
    if (!patient()) return false;
  }
}

// Elements in packed memory may follow smaller ones and so lie anywhere.
template <class Number>
__device__ Number load_anywhere(const std::byte* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(Number) == 0) return *reinterpret_cast<const Number*>(from);
  Number value;
  for (std::size_t i = 0; i < sizeof value; ++i) reinterpret_cast<std::byte*>(&value)[i] = from[i];
  return value;
}

// False if the element has not come.
template <class Number, class Patient>
__device__ bool load_stamped_number(const std::byte* from, std::uint32_t stamp, Number& value, const Patient& patient) {
  static_assert(sizeof(Number) % 4 == 0);
  for (std::size_t i = 0; i < sizeof value / 4;) {
    const StampedWord w = load_stamped(reinterpret_cast<const StampedWord*>(from) + i);
    if (w.stamp == stamp) {
      reinterpret_cast<std::uint32_t*>(&value)[i++] = w.word;
    } else if (!patient()) {
      return false;
    }
  }
  return true;
}

template <class Number, class Patient>
__device__ bool add_tile(const GpuTile& t, bool stamped, std::uint32_t stamp, const Patient& patient) {
  for (std::uint32_t j = 0; j < t.units; ++j) {
    const TilePlaces<1> at(GpuTile{t.copy, t.dims, t.first + 32 * j, 1, t.src, t.dst});
    if (at.count == 0) break;
    Number value{};
    if constexpr (sizeof(Number) % 4 == 0) {
      if (stamped && !load_stamped_number(at.src[0], stamp, value, patient)) return false;
    }
    if (!stamped) value = load_anywhere<Number>(at.src[0]);
    Number* to = reinterpret_cast<Number*>(at.dst[0]);
    *to = static_cast<Number>(*to + value);
  }
  return true;
}

template <class Patient>
__device__ bool add_tile_of(DType type, const GpuTile& t, bool stamped, std::uint32_t stamp, const Patient& patient) {
  switch (type) {
    case DType::f32:
      return add_tile<float>(t, stamped, stamp, patient);
    case DType::f64:
      return add_tile<double>(t, stamped, stamp, patient);
    case DType::i8:
    case DType::u8:
      return add_tile<std::uint8_t>(t, stamped, stamp, patient);
    case DType::i16:
    case DType::u16:
      return add_tile<std::uint16_t>(t, stamped, stamp, patient);
    case DType::i32:
    case DType::u32:
      return add_tile<std::uint32_t>(t, stamped, stamp, patient);
    case DType::i64:
    case DType::u64:
      return add_tile<std::uint64_t>(t, stamped, stamp, patient);
    case DType::none:
      return true;
  }
  return true;
}

}  // namespace tasuki
