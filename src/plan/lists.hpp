// Plans without lists, for engines that have none, and with what is equal in memory once.
#pragma once

#include "tasuki/plan.hpp"

namespace tasuki {

/// Whether a copy of the plan has a list.
bool has_lists(const Plan& plan);

/// The same plan, in which every step of a copy with lists is a copy of its own.
Plan without_lists(const Plan& plan);

/// Copies that have equal dimensions share them, and keep no others; buffers of one name share it.
void share(Plan& plan);

}  // namespace tasuki
