// Grid: a global array of cells cut into boxes, one a rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tasuki/context.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

using Index = std::array<std::int64_t, kMaxDims>;  ///< One number a dimension; entries past the grid's are 0.

/// A half-open box of cells: lo[d] <= i[d] < hi[d] for d < ndims.
struct Box {
  int ndims = 0;
  Index lo{};
  Index hi{};
  std::int64_t extent(int d) const { return hi[d] - lo[d]; }
  std::int64_t cells() const;  ///< 0 if empty in any dimension.
  bool empty() const { return cells() == 0; }
  friend bool operator==(const Box&, const Box&) = default;
};
Box intersect(const Box& a, const Box& b);

/// How a grid is cut.
struct GridOptions {
  /// Ranks in each dimension; the product must be the context's size. A 0 is chosen by Tasuki (all zeros, or nothing:
  /// all are) so that no rank is left without cells if that is possible, and the faces are cheap: few cells, which
  /// count twice across the last dimension, where each is a memory access of its own. 1 leaves the
  /// dimension unsplit.
  std::vector<int> split = {};
  std::vector<bool> periodic = {};  ///< Per dimension; missing entries are false.
  /// Explicit cuts: for a dimension d with cuts[d] not empty, split[d] + 1 ascending indices from 0 to the extent; an
  /// index may repeat, which leaves ranks empty. They settle an open split[d].
  std::vector<std::vector<std::int64_t>> cuts = {};
  /// Let Tasuki place the boxes on the ranks so that the most expensive faces stay inside islands. Otherwise rank order
  /// is row-major, the last dimension fastest, as `MPI_Cart_create` has it.
  bool reorder = false;
};

/// A grid of 1 to 7 dimensions over all ranks of a context; dimension 0 is the slowest in memory, the last contiguous.
/// Without cuts, a dimension of n cells over p ranks gives the first n % p ranks one cell more; if p > n the last ranks
/// are empty, which is allowed everywhere. A value: cheap to copy, immutable. Making one is collective: all ranks pass
/// the same arguments, and if one of them is bad, all ranks throw. Reading one is local and throws for a rank,
/// dimension or coordinate that does not exist.
class Grid {
 public:
  Grid(const Context& context, std::vector<std::int64_t> extents, GridOptions options = {});

  const Context& context() const { return context_; }
  /// Which of the context's grids and fields it is, in the order in which they were made; the same on every rank.
  int number() const;
  int ndims() const;
  std::int64_t extent(int d) const;  ///< Global cells in dimension d.
  int split(int d) const;            ///< Ranks in dimension d.
  bool periodic(int d) const;
  std::array<int, kMaxDims> coords(int rank) const;  ///< Where `rank` is in the grid of ranks.
  int rank_at(const std::array<int, kMaxDims>& coords) const;
  std::int64_t cut(int d, int coord)
      const;          ///< First global index of the ranks at `coord` in dimension d; coord = split(d) gives the extent.
  Box owned() const;  ///< Global indices of this rank's cells.
  Box owned(int rank) const;

 private:
  struct Shape;
  Context context_;
  std::shared_ptr<const Shape> shape_;
};

}  // namespace tasuki
