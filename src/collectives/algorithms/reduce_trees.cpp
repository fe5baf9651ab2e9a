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

// What `rank` and those above it in the tree give, the leaves first.
void gather(const Collective& c, const TreePart& part, int rank, int sum, Steps& steps) {
  const auto has = [&](int r) {
    if (r == c.root()) return Place{c.out(), part.offset};
    const bool adds = !part.tree.children[static_cast<std::size_t>(r)].empty();
    return Place{adds ? sum : c.own(r).buffer, part.offset};
  };
  const auto& children = part.tree.children[static_cast<std::size_t>(rank)];
  for (const int child : children) gather(c, part, child, sum, steps);
  const Place own{c.own(rank).buffer, part.offset};
  if (has(rank).buffer != own.buffer) steps.copy(rank, own, rank, has(rank), part.bytes);
  for (const int child : children) steps.combine(child, has(child), rank, has(rank), part.bytes);
}

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  const int sum = steps.scratch("sum", c.whole());
  for (const TreePart& part : tree_parts(c, parameters)) {
    steps.phase(part.name);
    steps.begin_chunks(parameters.chunk);
    gather(c, part, c.root(), sum, steps);
    steps.end();
  }
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm;
  algorithm.name = "trees";
  algorithm.collective = CollectiveKind::reduce;
  algorithm.complexity = 1;
  algorithm.over_trees = true;
  algorithm.settings = tree_settings;
  algorithm.seconds = tree_seconds;
  algorithm.list = list;
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
