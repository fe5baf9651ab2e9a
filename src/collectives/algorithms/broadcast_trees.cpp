// Broadcast `trees`: the message is cut into parts; each runs down a tree of its own in chunks, a symbolic loop in the
// plan. With arity 1 a tree is a chain, with arity n - 1 everybody hears from the root. V bytes.
//
//   one chain:   0 -> 1 -> 2 -> 3        one tree of arity 2:   3 <- 1 <- 0 -> 2
//
// The pipeline's fill, depth * arity chunks, and then arity * V / trees behind one another.
#include "collectives/algorithm.hpp"
#include "collectives/tree_parts.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  spread_parts(c, tree_parts(c, parameters), parameters.chunk, steps);
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "trees",
                   .collective = CollectiveKind::broadcast,
                   .over_trees = true,
                   .settings = tree_settings,
                   .paths = tree_paths,
                   .seconds = tree_seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
