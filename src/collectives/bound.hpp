// The bound of the hardware: what no algorithm of a collective can fall below.
#pragma once

#include <cstdint>

#include "collectives/collective.hpp"

namespace tasuki {

struct Bound {
  std::int64_t bytes = 0;  ///< that some rank must send, or get, at least
  double bandwidth =
      0;               ///< with which they can at best, bytes per second: of the fastest path, or of all links at once
  double seconds = 0;  ///< the least latency of a path, and these bytes
};

/// By the machine's prices, of ranks that start together. Of 1 rank, 0.
Bound bound_of(const Machine& machine, const Collective& collective);

}  // namespace tasuki
