// Broadcast `binomial`: ranks, counted from the root, that have the message give it to the one ... 4, 2, 1 above. V
// bytes.
//
//   0 -> 2     then     0 -> 1   2 -> 3
//
// ceil(log2 n) messages of V one after the other.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  return doublings(c.ranks()) * price.message(static_cast<double>(c.whole()));
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const Place data{c.out(), 0};
  for (int distance = 1 << doublings(n) >> 1; distance > 0; distance /= 2) {
    for (int place = 0; place + distance < n; place += 2 * distance)
      steps.copy((place + c.root()) % n, data, (place + distance + c.root()) % n, data, c.whole());
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "binomial",
                   .collective = CollectiveKind::broadcast,
                   .complexity = 1,
                   .worth_trying = more_than_a_pair,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
