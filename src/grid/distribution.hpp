// One dimension of a distributed array: which rank has which indices, and where in its local array.
#pragma once

#include <cstdint>
#include <vector>

#include "tasuki/distribution.hpp"

namespace tasuki {

/// Indices that follow each other, and that one rank has as neighbours in its local array.
struct DimBlock {
  int coordinate = 0;  ///< in this dimension of the process grid; 0 where all ranks have them
  std::int64_t begin = 0, end = 0;
  std::int64_t local = 0;  ///< index of `begin` in the local array
};

/// The block that has index `at`.
DimBlock block_at(const DimDistribution& dim, std::int64_t extent, std::int64_t at);
/// Those of one coordinate, ascending.
std::vector<DimBlock> blocks_of(const DimDistribution& dim, std::int64_t extent, int coordinate);
/// Indices that the ranks of a coordinate have.
std::int64_t local_extent(const DimDistribution& dim, std::int64_t extent, int coordinate);

/// The coordinates of a place in the process grid, and the place of coordinates.
std::vector<int> coordinates_of(const ArrayDistribution& array, int place);
int place_at(const ArrayDistribution& array, const std::vector<int>& coordinates);

}  // namespace tasuki
