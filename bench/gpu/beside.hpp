// A collective on GPU memory beside a computation of the same GPU, each in a stream of its own, or in a branch of its
// own of one graph: what the group gpu-overlap measures.
#pragma once

#include <functional>

#include "overlap.hpp"

namespace bench {

/// A runner of the collective that `make` makes for the stream it is given; null on all ranks if that is null. `start`
/// is the collective alone. A turn is `epochs` of it, one after the other, and beside them one computation; the next
/// turn follows when both have ended. `graph`: turns are captured and replayed, ten epochs a replay, of which `epochs`
/// is a divisor. Collective.
///
/// The computation has one block of 128 threads an SM, which use fewer than 32 registers each and no shared memory. A
/// thread adds and multiplies in one chain, so that a block takes a quarter of the cycles in which its SM could issue.
RunnerPtr beside(const tasuki::Context& context, int epochs, bool graph,
                 const std::function<RunnerPtr(tasuki::Stream)>& make);

/// Of a runner that `beside` has made: whether `start` puts the computation, too, into its streams, as the collective's
/// results must not depend on it.
void compute_beside(Runner& runner, bool computes);

/// Of a runner that `beside` has made: medians of `rounds`, µs an epoch. The computation is made as long as the
/// collective. Collective.
Overlap overlap_beside(Runner& runner, int iterations, int rounds);

}  // namespace bench
