// Allgather `direct`: everybody sends its block to everybody. B bytes a block.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2
//
// (n - 1) messages of B, all at once where there is hardware for each.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const double b = static_cast<double>(c.whole()) / c.ranks();
  return (c.ranks() - 1) * price.message(b) + price.work(c.both() ? 0 : b);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  for (int d = 1; d <= n; ++d) {
    for (int r = 0; r < n; ++r) {
      if (d == n && c.both()) continue;
      steps.copy(r, {c.in(), c.both() ? c.begin(r) : 0}, (r + d) % n, {c.out(), c.begin(r)}, c.block(r));
    }
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct", .collective = CollectiveKind::allgather, .seconds = seconds, .list = list};
}};

}  // namespace
}  // namespace tasuki
