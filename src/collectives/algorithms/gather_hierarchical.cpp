// Gather `hierarchical`: the blocks of another island go to the ranks of the root's, each of whom takes a share of them
// and gives it to the root. V bytes are all blocks, k islands of m ranks.
//
//   islands 0 1 | 2 3, root 0:    2 -> 0   3 -> 1    and    1 -> 0 its own    then    1 -> 0 what has crossed
//
// k - 1 messages across to each rank of the root's island, of V / n, and k (m - 1) inside to the root. The bytes that
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
  const auto arrives = [&](int rank, std::int64_t at) { return Place{rank == root ? c.out() : passing, at}; };
  for (int link = 0; link < count; ++link) {
    const auto here = [&](const Crossing& x) { return part_of(x.range, link, count, c.element()); };
    steps.phase("to the root's island");
    for (const Crossing& x : all)
      steps.copy(x.owner, {c.in(), here(x).begin}, x.forwarder, arrives(x.forwarder, c.begin(x.owner) + here(x).begin),
                 here(x).bytes(), link);
    if (link == 0) {
      steps.phase("inside");
      for (const int r : islands.members(islands.of(root)))
        if (!c.in_place(r)) steps.copy(r, {c.in(), 0}, root, {c.out(), c.begin(r)}, c.block(r), count);
    }
    steps.phase("to the root");
    for (const Crossing& x : all) {
      const std::int64_t at = c.begin(x.owner) + here(x).begin;
      if (x.forwarder != root) steps.copy(x.forwarder, {passing, at}, root, {c.out(), at}, here(x).bytes(), link);
    }
  }
}

const AlgorithmRegistration registration{
    [] { return hierarchical(CollectiveKind::gather, through_root_seconds, list); }};

}  // namespace
}  // namespace tasuki
