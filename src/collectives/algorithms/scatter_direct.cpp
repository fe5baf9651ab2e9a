// Scatter `direct`: the root sends everybody its block. V bytes are all blocks.
//
//   0 -> 1   0 -> 2   0 -> 3
//
// n - 1 messages at the root, (n - 1) / n V bytes.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto bytes = static_cast<double>(c.whole() - c.block(c.root()));
  return (c.ranks() - 1) * price.latency + bytes * price.second_per_byte;
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  // The root's own block last: others wait for theirs.
  for (int d = 1; d <= c.ranks(); ++d) {
    const int r = (c.root() + d) % c.ranks();
    if (!c.in_place(r)) steps.copy(c.root(), {c.in(), c.begin(r)}, r, {c.out(), 0}, c.block(r));
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct", .collective = CollectiveKind::scatter, .seconds = seconds, .list = list};
}};

}  // namespace
}  // namespace tasuki
