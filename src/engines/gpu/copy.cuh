// How a warp moves a tile of a strided copy (gpu_program.hpp): plainly, and with additions, also out of stamped lines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/gpu/lines.cuh"
#include "engines/gpu/places.cuh"
#include "engines/gpu/program.hpp"

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

// The same for rows of several words a thread: places row by row, for those of all would take too many registers.
__device__ inline void move_words(GpuTile t) {
  using Word = std::uint32_t;
  const std::uint32_t first = t.first;
  Word value[kTileRows][kRowWords];
#pragma unroll
  for (int r = 0; r < kTileRows; ++r, t.first += 32 * kRowWords) {
    const TilePlaces<Word, kRowWords, kSource> at(t);
#pragma unroll
    for (int k = 0; k < kRowWords; ++k) {
      if (k < at.count) value[r][k] = *reinterpret_cast<const Word*>(at.src(k));
    }
  }
  t.first = first;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r, t.first += 32 * kRowWords) {
    const TilePlaces<Word, kRowWords, kTarget> at(t);
#pragma unroll
    for (int k = 0; k < kRowWords; ++k) {
      if (k < at.count) *reinterpret_cast<Word*>(at.dst(k)) = value[r][k];
    }
  }
}

// A tile of `rows` rows. In one of a single row a thread does not compute the places of others.
template <class Unit>
__device__ void move_rows(const GpuTile& t, std::uint32_t rows) {
  if (rows == 1) return move_tile<Unit, 1>(t);
  move_tile<Unit, kTileRows>(t);
}

__device__ inline void move_units(const GpuTile& t, std::uint32_t rows) {
  if (t.copy.row_units != 32) {
    if (rows == 1) return move_tile<std::uint32_t, kRowWords>(t);
    return move_words(t);
  }
  switch (t.copy.log_unit) {
    case 4:
      return move_rows<uint4>(t, rows);
    case 3:
      return move_rows<uint2>(t, rows);
    case 2:
      return move_rows<std::uint32_t>(t, rows);
    case 1:
      return move_tile<std::uint16_t, kTileRows>(t);
    default:
      return move_tile<std::uint8_t, kTileRows>(t);
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
  std::uint32_t words[kWords];
  for (std::uint32_t i = 0; i < kWords; ++i) {
    if (!load_word(from, n * kWords + i, stamp, words[i], patient)) return false;
  }
  memcpy(&value, words, sizeof value);
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
