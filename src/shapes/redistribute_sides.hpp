// The two sides of a redistribution: which rank sends which cells to which one. A rank finds by index arithmetic what
// it has in common with others: time and memory are in proportion to what it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/cut.hpp"
#include "tasuki/distribution.hpp"

namespace tasuki {

/// Where the cells of a rank's local array lie in memory.
struct LocalCells {
  std::vector<std::int64_t> extents;  ///< of the local array
  Layout cell;                        ///< the bytes of the first cell, relative to the base
  std::vector<std::int64_t> strides;  ///< bytes from a cell to the next one in each dimension, which may be negative
  static LocalCells c_order(std::vector<std::int64_t> extents, const Layout& cell);
  /// From the lowest byte of a cell to the last, relative to the base. Nothing, if there are no cells.
  ByteRange range() const;
  bool cells_share_bytes() const;
};

/// A run of cells along one dimension that lie in one block of both sides.
struct CommonRun {
  std::int64_t count = 0;
  std::int64_t source = 0, target = 0;  ///< local indices of the first cell
};

/// The cells that go from one rank to another one: the product of the runs of all dimensions.
struct CommonCells {
  int rank = 0;                              ///< the other one
  std::vector<std::vector<CommonRun>> dims;  ///< by dimension of the target
};

/// What is wrong with two sides and a permutation; empty: nothing.
std::string complaint_about(const ArraySide& from, const ArraySide& to, const std::vector<int>& axes, int ranks);

/// Who sends which cells to whom. Of sides about which there is no complaint.
class RedistributeSides {
 public:
  /// Dimension d of the target is dimension axes[d] of the source, as numpy.transpose has it; empty: d.
  RedistributeSides(ArraySide from, ArraySide to, std::vector<int> axes);

  const ArrayDistribution& from() const { return from_.array; }
  const ArrayDistribution& to() const { return to_.array; }
  /// By the other rank, ascending; the rank itself may be among them. Where the source is replicated, a rank that has
  /// the cells itself sends them to itself.
  std::vector<CommonCells> sent(int rank) const;
  std::vector<CommonCells> received(int rank) const;
  /// The bytes of the cells on the rank that sends, and on the one that receives, in the same order; relative to the
  /// first byte of `range`.
  Layout source_bytes(const CommonCells& cells, const LocalCells& memory) const;
  Layout target_bytes(const CommonCells& cells, const LocalCells& memory) const;

 private:
  struct Along;
  Along along(std::size_t d, int coordinate, bool at_target) const;
  std::vector<CommonCells> common(int rank, bool at_target) const;
  int source_place(std::vector<int> coordinates, int target_place) const;

  ArraySide from_, to_;  // with a section for each dimension
  std::vector<int> axes_;
  std::vector<int> from_place_of_, to_place_of_;  // by rank
};

}  // namespace tasuki
