// Reduce `collect`: everybody sends its vector to the root, in parts; the root adds up the parts that have come while
// the next ones travel. V bytes.
//
//   1 -> 0   2 -> 0   3 -> 0            root: ((1 2) 3) 0, counted from the root
//
// (n - 1) messages of V at the root and as many passes, of which only the last part's is not hidden; (n - 1) V of
// scratch.
#include "collectives/algorithm.hpp"
#include "collectives/collected.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& parameters, const Price& price) {
  return collect_seconds(c, parameters, price, static_cast<double>(c.whole()));
}

void list(const Collective& c, const Parameters& parameters, Steps& steps) {
  const int slots = steps.scratch("came", c.whole() * (c.ranks() - 1));
  steps.begin_rounds(parameters.chunk > 0);
  collect(
      c, steps, c.root(), [&](int r) { return c.own(r); }, {c.out(), 0}, c.whole(), slots, c.whole(), parameters.chunk);
  steps.end();
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "collect",
                   .collective = CollectiveKind::reduce,
                   .complexity = 2,
                   .worth_trying = on_gpus,
                   .settings = cut_settings,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
