// Reduce `torus`: the vector is cut into parts; each is added up along a tree of its own over the hosts of a torus, in
// chunks, a symbolic loop in the plan. The trees are those of the broadcast, upside down: every edge is a link of the
// torus, and no link is used twice. V bytes.
//
//   a ring of 4, 2 trees:   3 -> 2 -> 1 -> 0   the first half      1 -> 2 -> 3 -> 0   the second half
//
// The pipeline's fill, depth chunks, and then V / trees behind one another, if a host can drive as many links at once.
#include "collectives/torus_parts.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  gather_parts(c, torus_parts(c, parameters), parameters.chunk, steps);
}

const AlgorithmRegistration registration{[] { return over_torus(CollectiveKind::reduce, 4, list); }};

}  // namespace
}  // namespace tasuki
