// ArrayDistribution: how an array of any number of dimensions lies on ranks. Data only: for `Redistribute`
// (redistribute.hpp), and for planning it off line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// How one dimension of an array is distributed over the ranks of one dimension of a process grid.
struct DimDistribution {
  enum class Kind : std::uint8_t {
    block,       ///< the first extent % ranks ranks have one index more than the others, as `Grid` cuts
    cuts,        ///< blocks between given cuts
    cyclic,      ///< blocks of `width` indices, dealt out in turn
    replicated,  ///< every rank has all indices
  };
  Kind kind = Kind::block;
  int ranks = 1;                        ///< in this dimension of the process grid
  std::int64_t width = 1;               ///< of `cyclic`
  std::vector<std::int64_t> cuts = {};  ///< of `cuts`: ranks + 1 ascending indices, from 0 to the extent

  /// Not distributed: the one rank of this dimension has all indices.
  static DimDistribution whole() { return {}; }
  static DimDistribution block(int ranks) { return {Kind::block, ranks}; }
  static DimDistribution cyclic(int ranks, std::int64_t width = 1) { return {Kind::cyclic, ranks, width}; }
  static DimDistribution between(std::vector<std::int64_t> cuts) {
    const auto ranks = static_cast<int>(cuts.size()) - 1;
    return {Kind::cuts, ranks, 1, std::move(cuts)};
  }
  static DimDistribution replicated(int ranks) { return {Kind::replicated, ranks}; }
  friend bool operator==(const DimDistribution&, const DimDistribution&) = default;
};

/// How a global array lies on ranks: each rank of a process grid has the product of what the dimensions give it, as one
/// local array, whose indices ascend with the global ones.
struct ArrayDistribution {
  std::vector<std::int64_t> extents;  ///< of the global array: 1 to 7 dimensions, each at least 1
  std::vector<DimDistribution> dims;  ///< one a dimension
  /// The ranks of the process grid, row-major, the last dimension fastest; each at most once. Ranks that are not among
  /// them have nothing. Empty: ranks 0, 1, ...
  std::vector<int> ranks = {};

  /// Why it cannot be among so many ranks; empty: nothing is wrong. All functions below need this to hold.
  std::string complaint(int ranks_there) const;
  int grid_size() const;                            ///< Ranks of the process grid.
  int rank_of(int place) const;                     ///< Of a place in the process grid, row-major.
  int place_of(int rank) const;                     ///< -1: the rank has nothing.
  std::vector<std::int64_t> local(int rank) const;  ///< Extents of the local array; all 0 for a rank that has nothing.
  /// The global indices that a rank has in dimension d, ascending; none for a rank that has nothing.
  std::vector<std::int64_t> indices(int rank, int d) const;
  /// One line for people, which says everything: `8 x 9: block(2), cyclic(3, 2) on ranks 5 4 3 2 1 0`.
  std::string describe() const;
  friend bool operator==(const ArrayDistribution&, const ArrayDistribution&) = default;
};

/// Part of a dimension: `count` indices from `start` on, `step` apart, which may be negative.
struct Section {
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
  friend bool operator==(const Section&, const Section&) = default;
};

/// One side of a redistribution: all of an array, or a section of it.
struct ArraySide {
  ArrayDistribution array;
  std::vector<Section> sections = {};  ///< one a dimension; empty: the whole array
  friend bool operator==(const ArraySide&, const ArraySide&) = default;
};

/// An array that moves: how its cells lie in this rank's memory before and after, relative to the addresses that are
/// given with it. A cell has equally many bytes on both sides and on all ranks.
struct MovedArray {
  struct Local {
    Layout cell = Layout::bytes(8);          ///< the bytes of the first cell; its extent: to the next one in C order
    std::vector<std::int64_t> strides = {};  ///< bytes from a cell to the next one, by dimension; empty: C order
    std::int64_t bytes = -1;                 ///< that there are from the address on; -1: not known
  };
  std::string name = "array";  ///< for plans and errors; the same on all ranks
  Local source = {}, target = {};
};

/// An array, without memory.
struct ArrayShape {
  std::string name = "array";
  std::int64_t element_bytes = 8;
};

/// A redistribution, off line. As `Redistribute`; local arrays are in C order.
struct RedistributeShape {
  ArraySide from, to;
  std::vector<int> axes = {};  ///< dimension d of `to` is dimension axes[d] of `from`; empty: d
  std::vector<ArrayShape> arrays = {{}};
  Memory memory = Memory::host;
  bool shared = false;  ///< the local arrays lie in memory that peers can map
  std::string path = "auto";
  std::int64_t scratch = 0;  ///< bytes that a rank may have of it; 0: no limit
};

class Planned;
/// The plans of all ranks of a machine (planning.hpp). Throws `Error` for a shape that cannot be.
Planned plan(const Machine& machine, const RedistributeShape& redistribute);

}  // namespace tasuki
