// Neighbour moves: who exchanges blocks with whom, and what one rank of a neighbour collective asks of the planner.
#pragma once

#include <string>
#include <vector>

#include "layout/cut.hpp"
#include "planner/planner.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// One rank's blocks. Their layouts are relative to the rank's `in` and `out`.
struct NeighbourBlocks {
  std::vector<int> to, from;  ///< ranks; -1: nobody
  std::vector<Layout> sent, received;
  bool of_grid = false;  ///< block 2 d for the lower neighbour in dimension d meets block 2 d + 1 there, and vice versa
};

/// The bytes from the first that the blocks name to the last: offsets from the base. Those of nobody are left out.
ByteRange range_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks);

/// The block of `other` that block `i` of `rank` goes to; -1: there is none.
int partner_of(const std::vector<NeighbourBlocks>& all, int rank, int i, int other);

/// Why the ranks' blocks do not fit together; empty if they do.
std::string misfit_of(const std::vector<NeighbourBlocks>& all);

/// The problem of a rank; `all` fit together. Its buffers begin where the range of the rank's blocks does. Throws
/// `Error` if a block that is received names a byte twice.
Problem neighbour_problem(const std::string& operation, const std::vector<NeighbourBlocks>& all, int rank);

}  // namespace tasuki
