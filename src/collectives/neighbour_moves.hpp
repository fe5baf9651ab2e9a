// Neighbour moves: who exchanges blocks with whom, and what one rank of a neighbour collective asks of the planner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/planner.hpp"

namespace tasuki {

/// One rank's blocks, in bytes.
struct NeighbourBlocks {
  std::vector<int> to, from;  ///< ranks; -1: nobody
  std::vector<std::int64_t> sent, received;
  std::vector<std::int64_t> send_at;  ///< where each block for another begins
  bool of_grid = false;  ///< block 2 d for the lower neighbour in dimension d meets block 2 d + 1 there, and vice versa
};

/// The block of `other` that block `i` of `rank` goes to; -1: there is none.
int partner_of(const std::vector<NeighbourBlocks>& all, int rank, int i, int other);

/// Why the ranks' blocks do not fit together; empty if they do.
std::string misfit_of(const std::vector<NeighbourBlocks>& all);

/// The problem of a rank; `all` fit together.
Problem neighbour_problem(const std::string& operation, const std::vector<NeighbourBlocks>& all, int rank);

}  // namespace tasuki
