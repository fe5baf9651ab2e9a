// Reduce `trees`: the vector is cut into parts; each is added up along a tree of its own, in chunks, a symbolic loop in
// the plan. With arity 1 a tree is a chain. The trees are those of the broadcast, upside down. V bytes.
//
//   one chain:   3 -> 2 -> 1 -> 0        one tree of arity 2:   3 -> 1 -> 0 <- 2
//
// The pipeline's fill, depth * arity chunks, and then arity * V / trees behind one another.
#include "collectives/algorithm.hpp"
#include "collectives/tree_parts.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  gather_parts(c, tree_parts(c, parameters), parameters.chunk, steps);
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "trees",
                   .collective = CollectiveKind::reduce,
                   .complexity = 1,
                   .over_trees = true,
                   .settings = tree_settings,
                   .paths = tree_paths,
                   .seconds = tree_seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
