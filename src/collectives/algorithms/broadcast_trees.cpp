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

// Between GPUs parts that are not cut pay in stamped lines: nobody waits until stores are visible, and who hands lines
// on begins before the last one has come. Whoever looks at each message by itself does not see that.
std::vector<std::string> paths(const Collective& c, const Parameters& p) {
  const bool cut = p.chunk > 0 && p.chunk < (c.whole() + p.trees - 1) / p.trees;
  return c.on_gpu() && !cut ? std::vector<std::string>{"peer:stamped"} : std::vector<std::string>{};
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm;
  algorithm.name = "trees";
  algorithm.collective = CollectiveKind::broadcast;
  algorithm.over_trees = true;
  algorithm.settings = tree_settings;
  algorithm.paths = paths;
  algorithm.seconds = tree_seconds;
  algorithm.list = list;
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
