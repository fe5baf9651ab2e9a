// Reduce-scatter `direct`: everybody sends each block to whom it belongs, who adds up in rank order. B bytes a block.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2        each: ((0 1) 2) 3 of its block
//
// (n - 1) messages of B and n passes over B.
#include <algorithm>

#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const double b = static_cast<double>(c.whole()) / c.ranks();
  return (c.ranks() - 1) * price.message(b) + price.work(c.ranks() * b);
}

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  std::int64_t largest = 0;
  for (int r = 0; r < n; ++r) largest = std::max(largest, c.block(r));
  // In place the result lies where others may still have to read.
  const int sum = c.both() ? steps.scratch("sum", largest) : c.out();
  if (c.on_gpu()) steps.begin_rounds();  // then all that a rank adds up is one pass
  for (int from = 0; from < n; ++from) {
    for (int d = 1; d <= n; ++d) {
      const int to = (from + d) % n;
      const Place src{c.in(), c.begin(to)};
      from == 0 ? steps.copy(from, src, to, {sum, 0}, c.block(to))
                : steps.combine(from, src, to, {sum, 0}, c.block(to));
    }
  }
  steps.end();
  for (int r = 0; r < n && c.both(); ++r) steps.copy(r, {sum, 0}, r, {c.out(), 0}, c.block(r));
}

// The planner looks at each message by itself, and takes LL lines. Between more than two GPUs one pass that loads
// from all peers is faster for large blocks: 256 MiB took four H200s 710 us by lines and 660 so.
std::vector<std::string> paths(const Collective& c, const Parameters&) {
  return c.on_gpu() && c.ranks() > 2 ? std::vector<std::string>{"peer:pull"} : std::vector<std::string>{};
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct",
                   .collective = CollectiveKind::reduce_scatter,
                   .in_order = true,
                   .paths = paths,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
