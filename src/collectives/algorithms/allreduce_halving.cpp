// Allreduce `halving`: reduce-scatter and allgather. Pairs at distance p / 2 ... 2, 1 exchange halves of what they
// still have to add up; then, at distance 1, 2 ... p / 2, what is done. Ranks beyond a power of two give theirs to a
// neighbour beforehand and get the result from it. V bytes, p the power of two.
//
//   0 <-> 2   1 <-> 3 a half    then    0 <-> 1   2 <-> 3 a quarter    then the same back
//
// 2 log2 p messages one after the other, 2 (p - 1) / p V bytes, (p - 1) / p V added; 2 messages of V more where n is no
// power of two.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const bool even = (c.ranks() & (c.ranks() - 1)) == 0;
  const int rounds = even ? doublings(c.ranks()) : doublings(c.ranks()) - 1;
  const double share = 1 - 1.0 / (1 << rounds);
  return 2 * rounds * price.latency + share * v * (2 * price.second_per_byte + price.work_per_byte) +
         (even ? 0 : 2 * price.message(v) + price.work(v)) + price.work(c.both() ? 0 : v / (1 << rounds));
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  int p = 1;
  while (2 * p <= c.ranks()) p *= 2;
  const int spare = c.ranks() - p;
  const auto rank = [spare](int i) { return i < spare ? 2 * i : i + spare; };  // of those that remain
  const Range whole{0, c.whole()};
  const auto blocks = [&](int first, int end) {
    return Range{part_of(whole, first, p, c.element()).begin, part_of(whole, end - 1, p, c.element()).end};
  };
  const auto out = [&](std::int64_t at) { return Place{c.out(), at}; };
  const Place in = c.own(0);
  steps.phase("fold");
  for (int i = 0; i < spare; ++i) {
    if (!c.both()) steps.copy(rank(i), in, rank(i), out(0), whole.bytes());
    steps.combine(rank(i) + 1, in, rank(i), out(0), whole.bytes());
  }
  const auto exchange = [&](int distance, auto&& step) {
    for (int i = 0; i < p; ++i) {
      const int first = (i ^ distance) / distance * distance;  // the half of the other rank of the pair
      step(i, i ^ distance, blocks(first, first + distance));
    }
  };
  steps.phase("halve");
  for (int distance = p / 2; distance > 0; distance /= 2) {
    // What leaves first, leaves from where the rank's own numbers are; the other half becomes the beginning of a sum.
    const bool first = distance == p / 2;
    if (first && !c.both()) {
      exchange(distance, [&](int i, int other, Range) {
        const int half = i / distance * distance;
        const Range mine = blocks(half, half + distance);
        static_cast<void>(other);
        if (i >= spare) steps.copy(rank(i), {in.buffer, mine.begin}, rank(i), out(mine.begin), mine.bytes());
      });
    }
    exchange(distance, [&](int i, int other, Range theirs) {
      const int from = first && i >= spare ? in.buffer : c.out();
      steps.combine(rank(i), {from, theirs.begin}, rank(other), out(theirs.begin), theirs.bytes());
    });
  }
  steps.phase("gather");
  for (int distance = 1; distance < p; distance *= 2) {
    for (int i = 0; i < p; ++i) {
      const int first = i / distance * distance;
      const Range mine = blocks(first, first + distance);
      steps.copy(rank(i), out(mine.begin), rank(i ^ distance), out(mine.begin), mine.bytes());
    }
  }
  steps.phase("unfold");
  for (int i = 0; i < spare; ++i) steps.copy(rank(i), out(0), rank(i) + 1, out(0), whole.bytes());
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "halving",
                   .collective = CollectiveKind::allreduce,
                   .complexity = 3,
                   .worth_trying = [](const Collective& c) { return unless_gpus_idle(c) && unless_in_place(c); },
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
