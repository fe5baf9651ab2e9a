// Transfer: what a transfer between two layouts asks of the planner.
#pragma once

#include <memory>
#include <string>

#include "shapes/joint.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// What `rank`, which is `from` or `to`, asks of the planner for a transfer between layouts of equal size: one move, or
/// several parts that may take different paths. Offsets are relative to the lowest byte that each layout names. Throws
/// `Error` if `dst` names a byte twice.
Problem transfer_problem(const Constants& constants, int rank, int from, int to, const Layout& src, const Layout& dst);

/// What is wrong with two layouts, of bytes that rank `from` sends to rank `to`; empty: nothing.
std::string complaint_about(int from, const Layout& src, int to, const Layout& dst);

/// The transfer among all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const TransferShape& transfer);

/// `transfer 0->1`.
std::string transfer_name(int from, int to);

}  // namespace tasuki
