// Expected: what an operation should take by the prices of its moves, and which price that rests on most.
#pragma once

#include <string>
#include <vector>

#include "paths/corrected.hpp"
#include "planner/planner.hpp"

namespace tasuki {

struct Expected {
  double seconds = 0;  ///< of an epoch that all ranks start together; 0: this rank exchanges nothing
  /// The path with more than half of the time of this rank's moves, and the dearest of its moves. Null: no path has.
  const Path* path = nullptr;
  PricedMove move = {};
  double price = 0;  ///< of that move
};

/// Of independent moves: the time of this rank's core, or of its peers' for it. Moves within the rank count, too.
Expected expected_of(const Problem& problem, const Facts& facts, const std::vector<Choice>& choices);

}  // namespace tasuki
