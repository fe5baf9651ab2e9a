// Allreduce `exchange`: everybody sends the whole vector to everybody and adds all up in rank order. V bytes.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2        all: ((0 1) 2) 3
//
// (n - 1) messages of V, n passes over V. One latency where there is hardware for each message.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  return (c.ranks() - 1) * price.message(v) + c.ranks() * price.work(v);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  Place mine = c.own(0);
  if (c.both()) {
    // The vector is added up where it lies, while others still read it.
    const Place data = mine;
    mine = {steps.scratch("mine", c.whole()), 0};
    for (int r = 0; r < n; ++r) steps.copy(r, data, r, mine, c.whole());
  }
  if (c.on_gpu()) steps.begin_rounds();  // then all that a rank adds up is one pass
  for (int from = 0; from < n; ++from) {
    for (int d = 1; d <= n; ++d) {
      const int to = (from + d) % n;
      from == 0 ? steps.copy(from, mine, to, {c.out(), 0}, c.whole())
                : steps.combine(from, mine, to, {c.out(), 0}, c.whole());
    }
  }
  steps.end();
}

const AlgorithmRegistration registration{[] {
  return Algorithm{
      .name = "exchange", .collective = CollectiveKind::allreduce, .in_order = true, .seconds = seconds, .list = list};
}};

}  // namespace
}  // namespace tasuki
