// Broadcast `torus`: the message is cut into parts; each runs down a tree of its own over the hosts of a torus, in
// chunks, a symbolic loop in the plan. Every edge of a tree is a link of the torus, and no link is used twice. V bytes.
//
//   a ring of 4, 2 trees:   0 -> 1 -> 2 -> 3   the first half      0 -> 3 -> 2 -> 1   the second half
//
// The pipeline's fill, depth chunks, and then V / trees behind one another, if a host can drive as many links at once.
#include "collectives/torus_parts.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  spread_parts(c, torus_parts(c, parameters), parameters.chunk, steps);
}

const AlgorithmRegistration registration{[] { return over_torus(CollectiveKind::broadcast, 3, list); }};

}  // namespace
}  // namespace tasuki
