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

void spread(const Collective& c, const TreePart& part, int rank, Steps& steps) {
  const Place data{c.out(), part.offset};
  const auto& children = part.tree.children[static_cast<std::size_t>(rank)];
  for (const int child : children) steps.copy(rank, data, child, data, part.bytes);
  for (const int child : children) spread(c, part, child, steps);
}

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  for (const TreePart& part : tree_parts(c, parameters)) {
    steps.phase(part.name);
    steps.begin_chunks(parameters.chunk);
    spread(c, part, c.root(), steps);
    steps.end();
  }
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm;
  algorithm.name = "trees";
  algorithm.collective = CollectiveKind::broadcast;
  algorithm.over_trees = true;
  algorithm.settings = tree_settings;
  algorithm.seconds = tree_seconds;
  algorithm.list = list;
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
