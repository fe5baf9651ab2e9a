// Cells: fields of which only the cells' numbers are known, as on unstructured meshes, and what a rank exchanges of
// them. Data only: for `Exchange` (exchange.hpp) and for planning off line (planning.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasuki/dtype.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// How the cells of a field lie in the memory of a rank: cell i lies i extents of `cell` after cell 0. The cells that a
/// rank owns and its ghosts are numbered together, in any order.
struct Cells {
  std::string name = "field";  ///< for plans and errors
  Layout cell;                 ///< the bytes of cell 0, relative to the field's first; its extent: to the next cell
  /// Of its numbers, which a cell has a whole number of. `none`: anything that can be copied; it cannot be combined.
  DType dtype = DType::none;
  std::int64_t count = 0;  ///< cells that there are on this rank; their numbers are 0 to `count` - 1

  /// `numbers` numbers a cell, one after the other, as in `field[cell][level]`.
  static Cells of(DType dtype, std::int64_t count, std::int64_t numbers = 1, std::string name = "field");
  /// The numbers of a cell lie `count` numbers apart, as in `field[level][cell]`.
  static Cells levels_first(DType dtype, std::int64_t count, std::int64_t numbers, std::string name = "field");
};

/// What a rank exchanges with one rank: cells by their numbers, the same of every field, or layouts. A list may be
/// empty, a rank may be named in several entries, and may name itself. What rank a sends to b in the first of its
/// entries for b that send something is what b receives in the first of its entries for a that receive something; the
/// second belongs to the second, and so on. Both list equally many cells, in the same order.
struct ExchangeEntry {
  int peer = 0;
  std::vector<std::int64_t> send = {};     ///< cells that this rank owns; one may go to many ranks
  std::vector<std::int64_t> receive = {};  ///< its ghosts, which nothing else of this exchange sends or receives
  /// In place of cells: the bytes of each field, in their order, relative to the field's first byte.
  std::vector<Layout> send_layouts = {}, receive_layouts = {};
};

}  // namespace tasuki
