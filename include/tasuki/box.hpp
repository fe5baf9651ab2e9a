// Boxes of cells, widths around them, and how a grid is cut: plain data, without ranks that run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

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
  /// Ranks in each dimension; the product must be the context's size. 1 leaves the dimension unsplit. Tasuki chooses
  /// the entries that are 0 (all of them, if the list is empty): first so that every rank has cells, if that is
  /// possible, then so that the faces have few cells. Cells of faces across the last dimension count twice, because
  /// each of them is a memory access of its own.
  std::vector<int> split = {};
  std::vector<bool> periodic = {};  ///< One a dimension; nothing: none is.
  /// Explicit cuts: for a dimension d with cuts[d] not empty, split[d] + 1 ascending indices from 0 to the extent; an
  /// index may repeat, which leaves ranks empty. If split[d] is 0, the number of cuts gives it.
  std::vector<std::vector<std::int64_t>> cuts = {};
  /// If true, Tasuki chooses which rank has which box, as mapping `hops` does. Otherwise `mapping` says.
  bool reorder = false;
  /// Which rank has which box.
  ///   `row`, or empty   in rank order, the last dimension fastest, as `MPI_Cart_create` has it
  ///   `column`          in rank order, the first dimension fastest
  ///   `blocks`          each island has a block of boxes, so that few bytes go from island to island
  ///   `hops`            of these and others the one whose busiest link carries the fewest bytes, then the one with the
  ///                     fewest bytes times hops; links are those of the machine's networks
  ///   `given`           as `given` says
  std::string mapping = {};
  std::vector<int> given = {};  ///< for each box, row-major, its rank: every rank once
};

/// A width for every side: `lo[d]` cells below and `hi[d]` cells above in dimension d.
struct Width {
  std::array<std::int64_t, kMaxDims> lo{};
  std::array<std::int64_t, kMaxDims> hi{};
  Width() = default;
  Width(std::int64_t all) {  // NOLINT(google-explicit-constructor): `{.shadow = 1}` is what users write
    lo.fill(all);
    hi.fill(all);
  }
  /// One entry a dimension, equally many; dimensions past them have width 0.
  Width(const std::vector<std::int64_t>& below, const std::vector<std::int64_t>& above);
  friend bool operator==(const Width&, const Width&) = default;
};

}  // namespace tasuki
