// The bound of the hardware: what no algorithm of a collective can fall below.
#pragma once

#include <cstdint>

#include "collectives/collective.hpp"

namespace tasuki {

struct Bound {
  std::int64_t bytes = 0;  ///< that some rank must move, at least
  double bandwidth = 0;    ///< with which they can at best, bytes per second; 0 where there are none
  double seconds = 0;      ///< of the path that is fastest for these bytes, or with all links at once
};

/// By the machine's prices, of ranks that start together. Of 1 rank, or without a byte to move, 0.
Bound bound_of(const Machine& machine, const Collective& collective);

}  // namespace tasuki
