// Allreduce `direct`: the vector is cut into n blocks; everybody sends each block to the rank that adds it up, in rank
// order, and gets its sum from it. V bytes.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2  a block each: ((0 1) 2) 3    then the same with the sums
//
// 2 (n - 1) messages of V / n, two deep, and a pass over V; 2 (n - 1) / n V on every link, which is the least there is.
#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto v = static_cast<double>(c.whole());
  const int n = c.ranks();
  return 2 * (n - 1) * price.message(v / n) + price.work((c.both() ? 1 + 1.0 / n : 1) * v);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  const Place own = c.own(0);
  // In place a sum lies where the rank's own numbers wait for their turn.
  const int mine = c.both() ? steps.scratch("mine", c.whole()) : own.buffer;
  for (int r = 1; r < n && c.both(); ++r) steps.copy(r, {own.buffer, c.begin(r)}, r, {mine, c.begin(r)}, c.block(r));
  steps.phase("reduce");
  if (c.on_gpu()) steps.begin_rounds();  // then all that a rank adds up is one pass
  for (int from = 0; from < n; ++from) {
    for (int d = 1; d <= n; ++d) {
      const int to = (from + d) % n;
      if (from == 0 && to == 0 && c.both()) continue;  // it is there
      const Place src{from == to ? mine : own.buffer, c.begin(to)};
      const Place dst{c.out(), c.begin(to)};
      from == 0 ? steps.copy(from, src, to, dst, c.block(to)) : steps.combine(from, src, to, dst, c.block(to));
    }
  }
  steps.end();
  if (n > 2) steps.stage();
  steps.phase("gather");
  for (int d = 1; d < n; ++d) {
    for (int r = 0; r < n; ++r) {
      const Place sum{c.out(), c.begin(r)};
      steps.copy(r, sum, (r + d) % n, sum, c.block(r), 1);
    }
  }
}

// The planner looks at each message by itself, and may take LL lines for both stages. Between more than two GPUs
// one pass that loads from all peers, and stores to all of them, are faster for large vectors.
std::vector<std::string> paths(const Collective& c, const Parameters&) {
  return c.on_gpu() && c.ranks() > 2 ? std::vector<std::string>{"peer:pull,peer:put"} : std::vector<std::string>{};
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct",
                   .collective = CollectiveKind::allreduce,
                   .complexity = 1,
                   .worth_trying = [](const Collective& c) { return more_than_a_pair(c) && unless_in_place(c); },
                   .in_order = true,
                   .paths = paths,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
