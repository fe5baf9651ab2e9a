// Allgather `doubling`: at distance 1, 2, 4 ... a rank forwards all blocks that it has, and has twice as many then.
// Blocks go where they belong at once, so nothing is turned at the end. V bytes are all blocks.
//
//   0 -> 1 -> 2 -> 3 -> 0 a block      then      0 <-> 2   1 <-> 3 two blocks
//
// ceil(log2 n) messages one after the other, (n - 1) / n V bytes.
#include <algorithm>

#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  return doublings(c.ranks()) * price.latency + v * (c.ranks() - 1) / c.ranks() * price.second_per_byte +
         price.work(c.both() ? 0 : v / c.ranks());
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  if (!c.both())
    for (int r = 0; r < n; ++r) steps.copy(r, {c.in(), 0}, r, {c.out(), c.begin(r)}, c.block(r));
  for (int distance = 1; distance < n; distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    const int blocks = std::min(distance, n - distance);
    for (int r = 0; r < n; ++r) {
      const int to = (r + distance) % n;
      if (distance == 1) {
        steps.copy(r, {c.in(), c.both() ? c.begin(r) : 0}, to, {c.out(), c.begin(r)}, c.block(r));
        continue;
      }
      // Blocks first to r, which may go beyond the last.
      const auto forward = [&](int first, int end) {
        steps.copy(r, {c.out(), c.begin(first)}, to, {c.out(), c.begin(first)}, c.begin(end) - c.begin(first));
      };
      const int first = r - blocks + 1;
      if (first < 0) forward(first + n, n);
      forward(std::max(first, 0), r + 1);
    }
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "doubling",
                   .collective = CollectiveKind::allgather,
                   .complexity = 1,
                   .worth_trying = more_than_a_pair,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
