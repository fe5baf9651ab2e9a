// Scatter `binomial`: ranks, counted from the root, give the upper half of the blocks that they have to the one
// ... 4, 2, 1 above. V bytes are all blocks.
//
//   0 -> 2 two blocks     then     0 -> 1 a block   2 -> 3 a block
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
  // Where the blocks of a subtree arrive; a rank that hands none on gets its own where it belongs.
  const auto has = [&](int place) { return trees.leaf(place) ? c.out() : held; };
  for (int distance = 1 << doublings(n) >> 1; distance > 0; distance /= 2) {
    steps.phase("distance " + std::to_string(distance));
    for (int from = 0; from + distance < n; from += 2 * distance) {
      const int place = from + distance;
      const int to = trees.rank(place);
      if (from > 0) {
        steps.copy(trees.rank(from), {held, trees.bytes(from, place)}, to, {has(place), 0},
                   trees.bytes(place, trees.end(place)));
        continue;
      }
      trees.at_root(place, [&](std::int64_t there, std::int64_t here, std::int64_t bytes) {
        steps.copy(c.root(), {c.in(), there}, to, {has(place), here}, bytes);
      });
    }
  }
  for (int place = 1; place < n; ++place) {
    const int r = trees.rank(place);
    if (!trees.leaf(place)) steps.copy(r, {held, 0}, r, {c.out(), 0}, c.block(r));
  }
  if (!c.in_place(c.root()))
    steps.copy(c.root(), {c.in(), c.begin(c.root())}, c.root(), {c.out(), 0}, c.block(c.root()));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "binomial",
                   .collective = CollectiveKind::scatter,
                   .complexity = 1,
                   .worth_trying = more_than_a_pair,
                   .seconds = subtree_seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
