// Neighbour collectives: who exchanges blocks with whom, and what a rank asks of the planner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grid/placement.hpp"
#include "layout/cut.hpp"
#include "shapes/joint.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The ranks beside `rank` in its grid of ranks, the lower one first in each dimension; -1: nobody.
std::vector<int> beside(const Placement& placement, int rank);

/// Blocks of so many bytes, one after the other, or all at the same place.
std::vector<Layout> contiguous(const std::vector<std::int64_t>& bytes, bool same_place);

/// The bytes from the first that the blocks name to the last: offsets from the base. Those of nobody are left out.
ByteRange range_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks);

/// Why the ranks' blocks do not fit together; empty if they do.
std::string misfit_of(const std::vector<NeighbourBlocks>& all);

/// The problem of a rank; `all` fit together. Its buffers begin where the range of the rank's blocks does. Throws
/// `Error` if a block that is received names a byte twice.
Problem neighbour_problem(const std::string& operation, const std::vector<NeighbourBlocks>& all, int rank);

/// What plans call the operation: `neighbour_alltoall`, `neighbour_allgather`.
const char* neighbour_name(bool allgather);

/// The neighbour collective of all ranks of a machine. Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const NeighbourShape& neighbours);

}  // namespace tasuki
