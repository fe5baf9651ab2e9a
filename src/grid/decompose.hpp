// How a grid is cut into boxes and which rank gets which box: pure arithmetic, the same on every rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/checked.hpp"
#include "tasuki/box.hpp"

namespace tasuki {

/// A grid cut into boxes, which are numbered row-major, the last dimension fastest.
struct Decomposition {
  std::vector<std::int64_t> extents;
  std::vector<int> split;
  std::vector<bool> periodic;
  std::vector<std::vector<std::int64_t>> cuts;  ///< split[d] + 1 indices for every dimension

  int ndims() const { return static_cast<int>(extents.size()); }
  int boxes() const;
  std::array<int, kMaxDims> coords(int box) const;
  int box_at(const std::array<int, kMaxDims>& coords) const;
  Box box(int number) const;
};

/// Checks extents and options, chooses what they leave open, and cuts. Throws `Error`, without a prefix, for anything
/// that cannot be.
Decomposition decompose(std::span<const std::int64_t> extents, const GridOptions& options, int ranks);

/// Where `extent` cells are cut for `parts` ranks: the first extent % parts get one cell more.
std::vector<std::int64_t> even_cuts(std::int64_t extent, int parts);

/// Completes `split`, in which 0 is open; the other entries must divide `ranks`. Of all ways it takes those that leave
/// the fewest ranks without cells, of these the one with the fewest cells on faces between ranks (those across the last
/// dimension, which lie apart in memory, count twice), then the smallest largest box, then the one that splits earlier
/// dimensions more (their faces are contiguous in memory).
std::vector<int> choose_split(std::span<const std::int64_t> extents, std::span<const int> split,
                              const std::vector<bool>& periodic, int ranks);

/// Two boxes that send each other the cells of a face, one cell deep.
struct Face {
  int box = 0;
  int neighbour = 0;  ///< above it in one dimension; of a periodic one also round the end
  Wide cells = 0;
};
/// All faces between boxes that have cells.
std::vector<Face> faces_of(const Decomposition& cut);

/// Cells on faces whose two sides are on different islands; `rank_of_box` empty means box i is rank i's.
Wide crossing_cells(const Decomposition& cut, std::span<const int> rank_of_box, std::span<const int> island_of_rank);

/// The rank of each box such that few cells cross islands: of row-major order and of all tilings of the grid of ranks
/// by equal blocks of at most an island's size, the one with the fewest crossing cells, row-major if none is better.
std::vector<int> place(const Decomposition& cut, std::span<const int> island_of_rank);

}  // namespace tasuki
