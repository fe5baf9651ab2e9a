// Reduce-scatter `halving`: at distance ... 4, 2, 1 a rank sends down what it has added up for those so far below it,
// and has half as many blocks to add up then. V bytes are all blocks.
//
//   0 <-> 2   1 <-> 3 two blocks      then      0 -> 3 -> 2 -> 1 -> 0 a block
//
// ceil(log2 n) messages one after the other, (n - 1) / n V bytes, as many added: an allgather by doubling, backwards.
#include <algorithm>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  return doublings(c.ranks()) * price.latency +
         v * (c.ranks() - 1) / c.ranks() * (price.second_per_byte + price.work_per_byte) + price.work(v);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const int sum = steps.scratch("sum", c.whole());
  for (int r = 0; r < n; ++r) steps.copy(r, {c.in(), 0}, r, {sum, 0}, c.whole());
  for (int distance = 1 << doublings(n) >> 1; distance > 0; distance /= 2) {
    steps.phase("distance " + std::to_string(distance));
    const int blocks = std::min(distance, n - distance);
    for (int r = 0; r < n; ++r) {
      const int to = (r - distance + n) % n;
      // Blocks to `to`, which may begin below the first.
      const auto hand_down = [&](int first, int end) {
        const Place place{sum, c.begin(first)};
        steps.combine(r, place, to, place, c.begin(end) - c.begin(first));
      };
      const int first = to - blocks + 1;
      if (first < 0) hand_down(first + n, n);
      hand_down(std::max(first, 0), to + 1);
    }
  }
  for (int r = 0; r < n; ++r) steps.copy(r, {sum, c.begin(r)}, r, {c.out(), 0}, c.block(r));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "halving",
                   .collective = CollectiveKind::reduce_scatter,
                   .complexity = 2,
                   .worth_trying = unless_a_pair_or_gpus_idle,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
