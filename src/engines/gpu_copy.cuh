// How a warp moves a tile of a strided copy (gpu_program.hpp): plainly, and with additions, also out of stamped lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu_lines.cuh"
#include "engines/gpu_places.cuh"
#include "engines/gpu_program.hpp"

namespace tasuki {

// All loads go out before the first store.
template <class Unit, int Most>
__device__ void move_tile(const GpuTile& t) {
  const TilePlaces<Unit, Most, kSource | kTarget> at(t);
  Unit value[Most];
#pragma unroll
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) value[j] = *reinterpret_cast<const Unit*>(at.src(j));
  }
#pragma unroll
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) *reinterpret_cast<Unit*>(at.dst(j)) = value[j];
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

// Element n of the lines from `from` on. False if it has not come.
template <class Number, class Patient>
__device__ bool load_from_lines(const std::byte* from, std::uint32_t n, std::uint32_t stamp, Number& value,
                                const Patient& patient) {
  constexpr std::uint32_t kWords = sizeof(Number) / 4;
  for (std::uint32_t i = 0; i < kWords; ++i) {
    if (!load_word(from, n * kWords + i, stamp, reinterpret_cast<std::uint32_t*>(&value)[i], patient)) return false;
  }
  return true;
}

template <class Number, class Patient>
__device__ bool add_tile(const GpuTile& t, bool stamped, std::uint32_t stamp, const Patient& patient) {
  for (std::uint32_t n = t.first; n < t.end; n += 32) {
    const TilePlaces<std::byte, 1, kSource | kTarget> at(GpuTile{t.copy, t.dims, n, n + 1, t.src, t.dst});
    Number value{};
    if constexpr (sizeof(Number) % 4 == 0) {
      if (stamped && !load_from_lines(t.src + t.copy.src_offset, n, stamp, value, patient)) return false;
    }
    if (!stamped) value = load_anywhere<Number>(at.src(0));
    Number* to = reinterpret_cast<Number*>(at.dst(0));
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
