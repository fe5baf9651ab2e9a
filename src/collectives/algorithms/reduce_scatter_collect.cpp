// Reduce-scatter `collect`: everybody sends each block to whom it belongs, in parts, who adds up the parts that have
// come while the next ones travel. B bytes a block.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2        rank 0: ((1 2) 3) 0 of its block, others likewise
//
// (n - 1) messages of B and as many passes, of which only the last part's is not hidden; (n - 1) B of scratch.
#include <algorithm>

#include "collectives/algorithm.hpp"
#include "collectives/collected.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& parameters, const Price& price) {
  return collect_seconds(c, parameters, price, static_cast<double>(c.whole()) / c.ranks());
}

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  const int n = c.ranks();
  std::int64_t largest = 0;
  for (int r = 0; r < n; ++r) largest = std::max(largest, c.block(r));
  const int slots = steps.scratch("came", largest * (n - 1));
  // In place the result lies where others may still have to read, so it is put there at the end.
  const int sum = c.both() ? steps.scratch("sum", largest) : c.out();
  steps.begin_rounds(parameters.chunk > 0);
  for (int to = 0; to < n; ++to) {
    collect(
        c, steps, to,
        [&](int) {
          return Place{c.in(), c.begin(to)};
        },
        {sum, 0}, c.block(to), slots, largest, parameters.chunk);
  }
  steps.end();
  for (int r = 0; r < n && c.both(); ++r) steps.copy(r, {sum, 0}, r, {c.out(), 0}, c.block(r));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "collect",
                   .collective = CollectiveKind::reduce_scatter,
                   .complexity = 2,
                   .settings = cut_settings,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
