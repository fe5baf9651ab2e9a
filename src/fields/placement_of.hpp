// The placement of a public grid: the box of every rank. The planner works with it.
#pragma once

#include "grid/placement.hpp"
#include "tasuki/grid.hpp"

namespace tasuki {

/// The reference is valid as long as the grid exists.
const Placement& placement_of(const Grid& grid);

}  // namespace tasuki
