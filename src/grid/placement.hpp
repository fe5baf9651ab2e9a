// Placement: a cut grid and who got which box; what planning needs to know of a grid.
#pragma once

#include <span>
#include <vector>

#include "grid/decompose.hpp"

namespace tasuki {

struct Placement {
  Decomposition cut;
  std::vector<int> rank_of_box;
  std::vector<int> box_of_rank;

  int ndims() const { return cut.ndims(); }
  Box owned(int rank) const { return cut.box(box_of_rank[static_cast<std::size_t>(rank)]); }
  std::array<int, kMaxDims> coords(int rank) const { return cut.coords(box_of_rank[static_cast<std::size_t>(rank)]); }
  int rank_at(const std::array<int, kMaxDims>& at) const {
    return rank_of_box[static_cast<std::size_t>(cut.box_at(at))];
  }
};

/// Cuts the grid for as many ranks as there are islands given, and places the boxes. Throws `Error`, without a prefix,
/// for anything that cannot be.
Placement placed(std::span<const std::int64_t> extents, const GridOptions& options,
                 std::span<const int> island_of_rank);

/// The placement of a cut.
Placement placed(Decomposition cut, bool reorder, std::span<const int> island_of_rank);

}  // namespace tasuki
