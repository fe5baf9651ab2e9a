// Scatter `hierarchical`: the root gives the ranks of its island a share each of what another island is to get; they
// send it to whom it belongs. V bytes are all blocks, k islands of m ranks.
//
//   islands 0 1 | 2 3, root 0:    0 -> 1 its own, and what is to cross    then    0 -> 2   1 -> 3
//
// k (m - 1) messages inside from the root, and k - 1 across from each rank of its island, of V / n. The bytes that
// cross are the others' blocks, once each. Parts of the blocks follow each other: one crosses while another is handed
// on.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  const int passing = steps.scratch("passing", c.whole());
  const std::vector<Crossing> all = crossings_of_root(c, islands);
  const int count = chunk_count(c, p);
  const int root = c.root();
  for (int link = 0; link < count; ++link) {
    const auto here = [&](const Crossing& x) { return part_of(x.range, link, count, c.element()); };
    steps.phase("to the island");
    for (const Crossing& x : all) {
      const std::int64_t at = c.begin(x.owner) + here(x).begin;
      if (x.forwarder != root) steps.copy(root, {c.in(), at}, x.forwarder, {passing, at}, here(x).bytes(), link);
    }
    steps.phase("to the others");
    for (const Crossing& x : all) {
      const Place src{x.forwarder == root ? c.in() : passing, c.begin(x.owner) + here(x).begin};
      steps.copy(x.forwarder, src, x.owner, {c.out(), here(x).begin}, here(x).bytes(), link);
    }
  }
  steps.phase("inside");
  for (const int r : islands.members(islands.of(root)))
    if (!c.in_place(r)) steps.copy(root, {c.in(), c.begin(r)}, r, {c.out(), 0}, c.block(r), count);
}

const AlgorithmRegistration registration{
    [] { return hierarchical(CollectiveKind::scatter, through_root_seconds, list); }};

}  // namespace
}  // namespace tasuki
