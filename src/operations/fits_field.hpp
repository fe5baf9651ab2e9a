// Does a plan that was loaded do to fields what a halo does? Found out from the grid alone, cell by cell.
#pragma once

#include <string>
#include <vector>

#include "tasuki/saved_plan.hpp"

namespace tasuki {

/// Empty, or how a halo's plan contradicts the fields that were given for its buffers: a cell is promised to one that
/// is not a shadow of it. `plan` has no complaints, and its buffers have the fields' sizes. Local.
std::string field_misfit(const Plan& plan, const std::vector<PlanMemory>& memory);

}  // namespace tasuki
