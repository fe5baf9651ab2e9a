// Reduce `binomial`: ranks, counted from the root, give what they have added up to the one at distance 1, 2, 4 ...
// below. V bytes.
//
//   1 -> 0   3 -> 2     then     2 -> 0            root: (0 1) (2 3)
//
// ceil(log2 n) messages of V one after the other, and as many passes.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  return doublings(c.ranks()) * (price.message(v) + price.work(v));
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const int sum = steps.scratch("sum", c.whole());
  const auto rank = [&](int place) { return (place + c.root()) % n; };
  // Where a rank adds up; who has nobody to give to it sends what its user gave.
  const auto has = [&](int place) {
    if (place == 0) return Place{c.out(), 0};
    return place % 2 == 0 && place + 1 < n ? Place{sum, 0} : c.own(rank(place));
  };
  if (c.on_gpu()) steps.begin_rounds();  // then all that a rank adds up is one pass
  for (int place = 0; place < n; ++place) {
    const Place own = c.own(rank(place));
    if (has(place).buffer != own.buffer) steps.copy(rank(place), own, rank(place), has(place), c.whole());
  }
  for (int distance = 1; distance < n; distance *= 2) {
    for (int place = distance; place < n; place += 2 * distance)
      steps.combine(rank(place), has(place), rank(place - distance), has(place - distance), c.whole());
  }
  steps.end();
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "binomial",
                   .collective = CollectiveKind::reduce,
                   .worth_trying = more_than_a_pair,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
