// Redistribute: what moving arrays from one distribution to another asks of the planner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/planner.hpp"
#include "shapes/joint.hpp"
#include "shapes/redistribute_sides.hpp"

namespace tasuki {

/// An array as a rank has it: where its cells lie before and after.
struct RedistributeCells {
  LocalCells source, target;
  bool copied = false;  ///< the source is copied first, because some of it is overwritten
  std::int64_t copied_bytes() const { return copied ? source.range().end - source.range().begin : 0; }
};

/// What plans call the operation: `redistribute u,v`.
std::string redistribute_name(const std::vector<std::string>& arrays);

/// The problem of a rank. Its buffers are the source and the target of each array in turn; they begin where the range
/// of the rank's cells does. `cells_of` is asked for the rank's own cells and for those of ranks that it deals with.
/// `scratch`: bytes that each rank may have of it; 0: no limit. `some_copied`: some rank has a source that is copied
/// first. Then there is a buffer for the copy of each source, behind the others.
Problem redistribute_problem(const RedistributeSides& sides, const std::vector<std::string>& arrays, int rank,
                             std::int64_t scratch, bool some_copied,
                             const std::function<std::vector<RedistributeCells>(int rank)>& cells_of);

/// Empty: nothing is wrong.
std::string complaint_about_scratch(std::int64_t scratch);

/// The redistribution among all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const RedistributeShape& redistribute);

}  // namespace tasuki
