// How a warp moves a tile of a strided copy (program.cuh).
#pragma once

#include "tasuki/kernel/impl/places.cuh"
#include "tasuki/kernel/impl/program.cuh"
#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device::lowered {

// All loads are issued before the first store. Units have a value from the beginning, here and below: an array that is
// only set under conditions the compiler keeps in memory.
template <class Unit, int Most, class Tile>
TASUKI_DEVICE void move_tile(const Tile& t) {
  const TilePlaces<Unit, Most, kSource | kTarget> at(t);
  Unit value[Most] = {};
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) value[j] = load_unit<Unit>(at.src(j));
  }
  TASUKI_UNROLL
  for (int j = 0; j < Most; ++j) {
    if (j < at.count) store_unit<Unit>(at.dst(j), value[j]);
  }
}

// The same for rows in which a thread has several words. Places are computed row by row, because the places of all rows
// would take too many registers.
template <class Tile>
TASUKI_DEVICE void move_words(Tile t) {
  using Word = std::uint32_t;
  const std::uint32_t first = t.first;
  Word value[kTileRows][kRowWords] = {};
  TASUKI_UNROLL
  for (int r = 0; r < kTileRows; ++r, t.first += 32 * kRowWords) {
    const TilePlaces<Word, kRowWords, kSource> at(t);
    TASUKI_UNROLL
    for (int k = 0; k < kRowWords; ++k) {
      if (k < at.count) value[r][k] = load_unit<Word>(at.src(k));
    }
  }
  t.first = first;
  TASUKI_UNROLL
  for (int r = 0; r < kTileRows; ++r, t.first += 32 * kRowWords) {
    const TilePlaces<Word, kRowWords, kTarget> at(t);
    TASUKI_UNROLL
    for (int k = 0; k < kRowWords; ++k) {
      if (k < at.count) store_unit<Word>(at.dst(k), value[r][k]);
    }
  }
}

// A tile of `rows` rows. For a single row a thread does not compute the places of other rows.
template <class Unit, class Tile>
TASUKI_DEVICE void move_rows(const Tile& t, std::uint32_t rows) {
  if (rows == 1) return move_tile<Unit, 1>(t);
  move_tile<Unit, kTileRows>(t);
}

template <class Tile>
TASUKI_DEVICE void move_units(const Tile& t, std::uint32_t rows) {
  if (t.copy.row_units != 32) {
    if (rows == 1) return move_tile<std::uint32_t, kRowWords>(t);
    return move_words(t);
  }
  switch (t.copy.log_unit) {
    case 4:
      return move_rows<Unit16>(t, rows);
    case 3:
      return move_rows<Unit8>(t, rows);
    case 2:
      return move_rows<std::uint32_t>(t, rows);
    case 1:
      return move_tile<std::uint16_t, kTileRows>(t);
    default:
      return move_tile<std::uint8_t, kTileRows>(t);
  }
}

}  // namespace tasuki::device::lowered
