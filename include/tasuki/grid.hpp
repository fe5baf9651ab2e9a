// Grid: a global array of cells cut into boxes, one a rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tasuki/box.hpp"
#include "tasuki/context.hpp"

namespace tasuki {

/// A grid of 1 to 7 dimensions over all ranks of a context; dimension 0 is the slowest in memory, the last contiguous.
/// Without cuts, a dimension of n cells over p ranks gives the first n % p ranks one cell more than the others; if p >
/// n the last ranks are empty, which is allowed everywhere. A value: cheap to copy, immutable. Making one is
/// collective: all ranks pass the same arguments, and if one argument is bad, all ranks throw. Reading one is local and
/// throws for a rank, dimension or coordinate that does not exist.
class Grid {
 public:
  Grid(const Context& context, std::vector<std::int64_t> extents, GridOptions options = {});

  const Context& context() const { return context_; }
  /// Number of this grid among the grids and fields of the context, in the order in which they were made; the same on
  /// every rank.
  int number() const;
  int ndims() const;
  std::int64_t extent(int d) const;  ///< Global cells in dimension d.
  int split(int d) const;            ///< Ranks in dimension d.
  bool periodic(int d) const;
  std::array<int, kMaxDims> coords(int rank) const;  ///< Coordinates of `rank` in the grid of ranks.
  int rank_at(const std::array<int, kMaxDims>& coords) const;
  /// First global index of the ranks at `coord` in dimension d; coord = split(d) gives the extent.
  std::int64_t cut(int d, int coord) const;
  Box owned() const;  ///< Global indices of this rank's cells.
  Box owned(int rank) const;

 private:
  struct Shape;
  friend const struct Placement& placement_of(const Grid& grid);
  Context context_;
  std::shared_ptr<const Shape> shape_;
};

}  // namespace tasuki
