// Reduce `direct`: everybody sends the vector to the root, who adds up in rank order. V bytes.
//
//   1 2 3 -> 0        ((0 1) 2) 3
//
// n - 1 messages of V into the root, n - 1 passes over V. One latency where there is hardware for each message.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  return (c.ranks() - 1) * price.message(v) + c.ranks() * price.work(v);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Place out{c.out(), 0};
  const int root = c.root();
  Place mine = c.own(root);
  if (c.in_place(root) && root > 0) {
    // The sum begins where the root's own numbers wait for their turn.
    mine = {steps.scratch("mine", c.whole()), 0};
    steps.copy(root, c.own(root), root, mine, c.whole());
  }
  if (c.on_gpu()) steps.begin_rounds();  // then all that the root adds up is one pass
  for (int from = 0; from < c.ranks(); ++from) {
    if (from == 0 && root == 0 && c.in_place(root)) continue;
    const Place src = from == root ? mine : c.own(from);
    from == 0 ? steps.copy(from, src, root, out, c.whole()) : steps.combine(from, src, root, out, c.whole());
  }
  steps.end();
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct",
                   .collective = CollectiveKind::reduce,
                   .complexity = 3,
                   .worth_trying = more_than_a_pair,
                   .in_order = true,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
