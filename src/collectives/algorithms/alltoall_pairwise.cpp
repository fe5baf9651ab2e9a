// All-to-all `pairwise`: in round d everybody sends to the rank d above and receives from the rank d below, one round
// after the other. B bytes a block.
//
//   0 -> 1 -> 2 -> 3 -> 0     then     0 <-> 2  1 <-> 3     then     0 -> 3 -> 2 -> 1 -> 0
//
// (n - 1) messages of B one after the other, two lanes a rank. Nobody gets more than one block at a time.
#include "collectives/algorithm.hpp"
#include "collectives/alltoall_blocks.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Place from = staged_blocks(c, steps);
  steps.begin_rounds();
  for (int d = 1; d < c.ranks(); ++d) send_blocks(c, steps, from, d);
  steps.end();
  keep_blocks(c, steps);
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "pairwise",
                   .collective = CollectiveKind::alltoall,
                   .complexity = 1,
                   .worth_trying = more_than_a_pair,
                   .seconds = alltoall_seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
