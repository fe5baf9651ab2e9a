// What planning needs to know of a grid.
#pragma once

#include "grid/placement.hpp"
#include "tasuki/grid.hpp"

namespace tasuki {

/// Lives as long as the grid.
const Placement& placement_of(const Grid& grid);

}  // namespace tasuki
