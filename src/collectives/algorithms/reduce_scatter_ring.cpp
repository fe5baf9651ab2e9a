// Reduce-scatter `ring`: each block goes round the ring, is added up on the way and ends where it belongs. B bytes a
// block.
//
//   0 -> 1 -> 2 -> 3 -> 0    round s: rank r forwards block r - s - 1, the next adds its own to it; n - 1 rounds
//
// (n - 1) messages of B one after the other, 2 passes over each block; a rank deals with two others only.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const double b = static_cast<double>(c.whole()) / c.ranks();
  return (c.ranks() - 1) * (price.message(b) + price.work(2 * b));
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const int sum = steps.scratch("sum", c.whole());
  for (int s = 0; s < n - 1; ++s) {
    const bool last = s == n - 2 && !c.both();
    for (int r = 0; r < n; ++r) {
      const int b = (r - s - 1 + n) % n;
      const int to = (r + 1) % n;
      const Place dst = last ? Place{c.out(), 0} : Place{sum, c.begin(b)};
      steps.copy(to, {c.in(), c.begin(b)}, to, dst, c.block(b));
      steps.combine(r, {s == 0 ? c.in() : sum, c.begin(b)}, to, dst, c.block(b));
    }
  }
  // In place the result lies where others may still have had to read.
  for (int r = 0; r < n && c.both(); ++r) steps.copy(r, {sum, c.begin(r)}, r, {c.out(), 0}, c.block(r));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "ring",
                   .collective = CollectiveKind::reduce_scatter,
                   .complexity = 1,
                   .worth_trying = unless_a_pair_or_gpus_idle,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
