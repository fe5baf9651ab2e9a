// Barrier `dissemination`: at distance 1, 2, 4 ... a rank tells all of whom it has heard, a byte each, and so hears of
// twice as many. A rank goes on when it has heard of all.
//
//   0 -> 1 -> 2 -> 3 -> 0     then     0 <-> 2   1 <-> 3
//
// ceil(log2 n) messages of at most n / 2 bytes one after the other.
#include <algorithm>

#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  return doublings(c.ranks()) * price.latency;
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const std::int64_t each = c.on_gpu() ? 4 : 1;        // bytes: GPUs send words fastest
  const int heard = steps.scratch("heard", n * each);  // of the rank itself, then of those below it
  for (int distance = 1; distance < n; distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    for (int r = 0; r < n; ++r)
      steps.copy(r, {heard, 0}, (r + distance) % n, {heard, distance * each}, std::min(distance, n - distance) * each);
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "dissemination", .collective = CollectiveKind::barrier, .seconds = seconds, .list = list};
}};

}  // namespace
}  // namespace tasuki
