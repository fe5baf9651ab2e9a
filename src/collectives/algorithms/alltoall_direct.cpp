// All-to-all `direct`: everybody sends each block to whom it is for. B bytes a block.
//
//   0 -> 1 2 3    1 -> 2 3 0    2 -> 3 0 1    3 -> 0 1 2
//
// (n - 1) messages of B, all at once where there is hardware for each.
#include "collectives/algorithm.hpp"
#include "collectives/alltoall_blocks.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Place from = staged_blocks(c, steps);
  for (int d = 1; d < c.ranks(); ++d) send_blocks(c, steps, from, d);
  keep_blocks(c, steps);
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "direct", .collective = CollectiveKind::alltoall, .seconds = alltoall_seconds, .list = list};
}};

}  // namespace
}  // namespace tasuki
