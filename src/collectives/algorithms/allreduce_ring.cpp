// Allreduce `ring`: the vector is cut into n blocks; each goes round the ring and is added up, then goes round once
// more. V bytes.
//
//   0 -> 1 -> 2 -> 3 -> 0    round s: rank r forwards block r - s, the next adds it;
//                            n - 1 rounds, after which r has all of block r + 1; then n - 1 rounds that forward it
//
// 2 (n - 1) messages of V / n one after the other, V bytes added or copied beside them. Every link carries
// 2 (n - 1) / n V, which is the least there is.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const int n = c.ranks();
  return 2 * (n - 1) * price.message(v / n) + price.work((c.both() ? 1 : 2) * v);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const int in = c.in();
  const int out = c.out();
  for (int r = 0; r < n && !c.both(); ++r) {
    // A rank forwards its own block first, before anything is added to it.
    for (int b = 0; b < n; ++b)
      if (b != r) steps.copy(r, {in, c.begin(b)}, r, {out, c.begin(b)}, c.block(b));
  }
  steps.phase("reduce");
  for (int s = 0; s < n - 1; ++s) {
    for (int r = 0; r < n; ++r) {
      const int b = (r - s + n) % n;
      steps.combine(r, {s == 0 ? in : out, c.begin(b)}, (r + 1) % n, {out, c.begin(b)}, c.block(b));
    }
  }
  steps.phase("gather");
  for (int s = 0; s < n - 1; ++s) {
    for (int r = 0; r < n; ++r) {
      const int b = (r + 1 - s + n) % n;
      steps.copy(r, {out, c.begin(b)}, (r + 1) % n, {out, c.begin(b)}, c.block(b));
    }
  }
}

const AlgorithmRegistration registration{[] {
  return Algorithm{
      .name = "ring",
      .collective = CollectiveKind::allreduce,
      .complexity = 2,
      .worth_trying = [](const Collective& c) { return unless_a_pair_or_gpus_idle(c) && unless_in_place(c); },
      .seconds = seconds,
      .list = list};
}};

}  // namespace
}  // namespace tasuki
