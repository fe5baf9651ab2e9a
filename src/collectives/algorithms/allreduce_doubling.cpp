// Allreduce `doubling`: pairs at distance 1, 2, 4 ... exchange what each has added up so far. Ranks beyond a power of
// two give theirs to a neighbour beforehand and get the result from it. V bytes, p the power of two.
//
//   0 <-> 1   2 <-> 3     then     0 <-> 2   1 <-> 3            all: (0 1) (2 3)
//
// log2 p messages of V one after the other, and as many passes; 2 more where n is no power of two.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const bool even = (c.ranks() & (c.ranks() - 1)) == 0;
  const int rounds = even ? doublings(c.ranks()) : doublings(c.ranks()) - 1;
  return rounds * (price.message(v) + price.work(v)) + (even ? 0 : 2 * price.message(v) + price.work(v));
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const std::int64_t v = c.whole();
  const Place out{c.out(), 0};
  int p = 1;
  while (2 * p <= c.ranks()) p *= 2;
  const int spare = c.ranks() - p;
  const auto rank = [spare](int i) { return i < spare ? 2 * i : i + spare; };  // of those that remain
  const int fold = steps.scratch("folded", v);
  const int came = steps.scratch("came", v * doublings(p));
  std::vector<Place> has(static_cast<std::size_t>(p), c.own(0));
  steps.phase("fold");
  for (int i = 0; i < spare; ++i) {
    Place& sum = has[static_cast<std::size_t>(i)];
    steps.copy(rank(i) + 1, c.own(0), rank(i), {fold, 0}, v);
    steps.combine(rank(i), sum, rank(i), {fold, 0}, v);
    sum = {fold, 0};
  }
  for (int k = 0, distance = 1; distance < p; ++k, distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    std::vector<Place> to(has.size(), {came, k * v});
    for (int i = 0; i < p && 2 * distance == p; ++i) {
      // The last sum belongs into `out`, unless that is what the partner still has to get.
      if (has[static_cast<std::size_t>(i)].buffer != out.buffer) to[static_cast<std::size_t>(i)] = out;
    }
    for (int i = 0; i < p; ++i) {
      const int other = i ^ distance;
      steps.copy(rank(i), has[static_cast<std::size_t>(i)], rank(other), to[static_cast<std::size_t>(other)], v);
    }
    for (int i = 0; i < p; ++i) {
      Place& sum = has[static_cast<std::size_t>(i)];
      const Place& other = to[static_cast<std::size_t>(i)];
      if (2 * distance == p && sum.buffer == out.buffer) {
        steps.combine(rank(i), other, rank(i), sum, v);
      } else {
        steps.combine(rank(i), sum, rank(i), other, v);
        sum = other;
      }
    }
  }
  steps.phase("unfold");
  for (int i = 0; i < spare; ++i) steps.copy(rank(i), out, rank(i) + 1, out, v);
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm;
  algorithm.name = "doubling";
  algorithm.collective = CollectiveKind::allreduce;
  algorithm.complexity = 1;
  algorithm.seconds = seconds;
  algorithm.list = list;
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
