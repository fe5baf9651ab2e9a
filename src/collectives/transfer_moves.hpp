// Transfer moves: what a transfer between two layouts asks of the planner.
#pragma once

#include "planner/planner.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// What `rank`, which is `from` or `to`, asks of the planner for a transfer between layouts of equal size: one move, or
/// several parts that may take different paths. Offsets are relative to the lowest byte that each layout names. Throws
/// `Error` if `dst` names a byte twice.
Problem transfer_problem(const Constants& constants, int rank, int from, int to, const Layout& src, const Layout& dst);

/// `transfer 0->1`.
std::string transfer_name(int from, int to);

}  // namespace tasuki
