// Row places: a list of where the units lie that a warp's lanes move, in place of strides. Part of tasuki/kernel.cuh.
//
// To find a unit by strides takes a division for each dimension, a dozen instructions. An epoch that moves few bytes
// executes each of these instructions once, and fetching them takes longer than moving the bytes.
#pragma once

#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/warp.cuh"

namespace tasuki::device::lowered {

/// Where a lane's units of a row lie, in units from the beginning. Of an LL line: its words, of the source if the
/// line is filled, else of the destination. Of a copy: a source and its destination, and another two.
struct alignas(16) RowPlaces {
  std::int32_t at[4];
};
constexpr std::int32_t kNowhere = -2147483647 - 1;  ///< the lane has fewer
constexpr std::int32_t kOthers = kNowhere + 1;      ///< of a line that is unpacked: the word is there, but for others
constexpr std::uint32_t kCopiedUnits = 2;           ///< that a lane copies in a row

TASUKI_DEVICE void load_words(const std::byte* from, const RowPlaces& at, std::uint32_t (&word)[4]) {
  TASUKI_UNROLL
  for (int k = 0; k < 4; ++k) {
    word[k] = 0;
    if (at.at[k] != kNowhere) word[k] = reinterpret_cast<const std::uint32_t*>(from)[at.at[k]];
  }
}

TASUKI_DEVICE void store_words(std::byte* to, const RowPlaces& at, const std::uint32_t (&word)[4]) {
  TASUKI_UNROLL
  for (int k = 0; k < 4; ++k) {
    if (at.at[k] > kOthers) reinterpret_cast<std::uint32_t*>(to)[at.at[k]] = word[k];
  }
}

/// What a lane copies in some rows, the first `rows` of those. All loads are issued before the first store. Units have
/// a value from the beginning for the reason that copy.cuh gives.
template <class Unit, int kRows>
TASUKI_DEVICE void copy_units(const std::byte* src, std::byte* dst, const RowPlaces (&at)[kRows], int rows) {
  constexpr std::int64_t kBytes = sizeof(Unit);
  constexpr int kUnits = kCopiedUnits;
  Unit unit[kRows][kUnits] = {};
  TASUKI_UNROLL
  for (int j = 0; j < kRows; ++j) {
    if (j >= rows) break;
    TASUKI_UNROLL
    for (int k = 0; k < kUnits; ++k)
      if (at[j].at[2 * k] != kNowhere) unit[j][k] = load_unit<Unit>(src + at[j].at[2 * k] * kBytes);
  }
  TASUKI_UNROLL
  for (int j = 0; j < kRows; ++j) {
    if (j >= rows) break;
    TASUKI_UNROLL
    for (int k = 0; k < kUnits; ++k)
      if (at[j].at[2 * k] != kNowhere) store_unit<Unit>(dst + at[j].at[2 * k + 1] * kBytes, unit[j][k]);
  }
}

/// The same, of units of 2^log_unit bytes. Those of 4 and of 16 bytes, which most are, are found without a table of
/// jumps.
template <int kRows>
TASUKI_DEVICE void copy_rows(int log_unit, const std::byte* src, std::byte* dst, const RowPlaces (&at)[kRows],
                             int rows) {
  if (log_unit == 2) return copy_units<std::uint32_t>(src, dst, at, rows);
  if (log_unit == 4) return copy_units<Unit16>(src, dst, at, rows);
  if (log_unit == 3) return copy_units<Unit8>(src, dst, at, rows);
  if (log_unit == 1) return copy_units<std::uint16_t>(src, dst, at, rows);
  copy_units<std::uint8_t>(src, dst, at, rows);
}

}  // namespace tasuki::device::lowered
