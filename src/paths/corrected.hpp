// Corrected: a path's prices after a move was found to take longer than they say.
#pragma once

#include <cstdint>

#include "paths/path.hpp"

namespace tasuki {

/// A move by what its price depends on.
struct PricedMove {
  int src_rank = 0;
  int dst_rank = 0;
  std::int64_t bytes = 0;
  std::int64_t runs = 1;
  std::int64_t whole = 0;
  bool mutual = false;
  bool src_shared = true;  ///< where other ranks can map it
  bool dst_shared = true;
  std::int64_t moved = 0;  ///< `Question::moved`
};

/// What the path's prices say the move costs; 0 if it cannot carry it.
double price_of(const Machine& machine, const Path& path, const PathCost& cost, const PricedMove& move);

/// The constant that the move's price depends on most is changed so far that the move costs `seconds`. Prices that say
/// as much already stay.
PathCost corrected(const Machine& machine, const Path& path, const PathCost& cost, const PricedMove& move,
                   double seconds);

}  // namespace tasuki
