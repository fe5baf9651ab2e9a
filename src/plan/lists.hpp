// Plans without lists, for engines that have none.
#pragma once

#include "tasuki/plan.hpp"

namespace tasuki {

/// Whether a copy of the plan has a list.
bool has_lists(const Plan& plan);

/// The same plan, in which every step of a copy with lists is a copy of its own.
Plan without_lists(const Plan& plan);

}  // namespace tasuki
