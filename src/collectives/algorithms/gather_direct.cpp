// Gather `direct`: everybody sends its block to the root. V bytes are all blocks.
//
//   1 -> 0   2 -> 0   3 -> 0
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
  for (int r = 0; r < c.ranks(); ++r)
    if (!c.in_place(r)) steps.copy(r, {c.in(), 0}, c.root(), {c.out(), c.begin(r)}, c.block(r));
}

const AlgorithmRegistration registration{
    [] { return Algorithm{.name = "direct", .collective = CollectiveKind::gather, .seconds = seconds, .list = list}; }};

}  // namespace
}  // namespace tasuki
