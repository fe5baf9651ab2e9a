// Allgather `ring`: every block goes round the ring. B bytes a block.
//
//   0 -> 1 -> 2 -> 3 -> 0    round s: rank r forwards block r - s; n - 1 rounds
//
// (n - 1) messages of B one after the other; a rank deals with two others only.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const double b = static_cast<double>(c.whole()) / c.ranks();
  return (c.ranks() - 1) * price.message(b) + price.work(c.both() ? 0 : b);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  for (int s = 0; s < n - 1; ++s) {
    for (int r = 0; r < n; ++r) {
      const int b = (r - s + n) % n;
      const Place place{c.out(), c.begin(b)};
      steps.copy(r, s == 0 && !c.both() ? Place{c.in(), 0} : place, (r + 1) % n, place, c.block(b));
    }
  }
  for (int r = 0; r < n && !c.both(); ++r) steps.copy(r, {c.in(), 0}, r, {c.out(), c.begin(r)}, c.block(r));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "ring",
                   .collective = CollectiveKind::allgather,
                   .complexity = 2,
                   .worth_trying = more_than_a_pair,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
