// Overlap as the OSU benchmarks report it: how much of an operation's time a computation of equal length hides.
#pragma once

#include "peer.hpp"

namespace bench {

/// µs, on the slowest rank, of ranks that begin together.
struct Overlap {
  double pure = 0;     ///< start and wait
  double compute = 0;  ///< the computation by itself, as long as that
  double overall = 0;  ///< start, the computation, wait
  double start = 0;    ///< the start alone
  /// max(0, 100 - (overall - compute) / pure * 100)
  double percent() const;
};

/// Medians of `rounds`. The computation is one of the rank's processor, which calls nothing meanwhile. Collective.
Overlap overlap_of(const tasuki::Context& context, Runner& runner, int iterations, int rounds);

}  // namespace bench
