// Gather `binomial`: ranks, counted from the root, give all blocks that they have to the one at distance 1, 2, 4 ...
// below. V bytes are all blocks.
//
//   1 -> 0 a block   3 -> 2 a block     then     2 -> 0 two blocks
//
// ceil(log2 n) messages one after the other at the root, (n - 1) / n V bytes.
#include "collectives/algorithm.hpp"
#include "collectives/subtrees.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Subtrees trees(c);
  const int n = c.ranks();
  const int held = steps.scratch("held", trees.largest());
  // Blocks of a subtree on the rank at its top; a rank that gets none sends what its user gave.
  const auto has = [&](int place) { return Place{trees.leaf(place) ? c.in() : held, 0}; };
  if (!c.in_place(c.root()))
    steps.copy(c.root(), {c.in(), 0}, c.root(), {c.out(), c.begin(c.root())}, c.block(c.root()));
  for (int place = 1; place < n; ++place) {
    const int r = trees.rank(place);
    if (!trees.leaf(place)) steps.copy(r, {c.in(), 0}, r, has(place), c.block(r));
  }
  for (int distance = 1; distance < n; distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    for (int place = distance; place < n; place += 2 * distance) {
      const int to = place - distance;
      const Place src = has(place);
      if (to > 0) {
        steps.copy(trees.rank(place), src, trees.rank(to), {held, trees.bytes(to, place)},
                   trees.bytes(place, trees.end(place)));
        continue;
      }
      trees.at_root(place, [&](std::int64_t there, std::int64_t here, std::int64_t bytes) {
        steps.copy(trees.rank(place), {src.buffer, here}, c.root(), {c.out(), there}, bytes);
      });
    }
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "binomial",
                   .collective = CollectiveKind::gather,
                   .complexity = 1,
                   .worth_trying = more_than_a_pair,
                   .seconds = subtree_seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
