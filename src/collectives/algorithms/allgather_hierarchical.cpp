// Allgather `hierarchical`: every block crosses to each other island once, to one of its ranks, who tells it to the
// others there; inside its own island everybody sends its block to everybody. V bytes, k islands of m ranks.
//
//   islands 0 1 | 2 3:   0 <-> 2   1 <-> 3   and   0 <-> 1   2 <-> 3    then    0 <-> 1   2 <-> 3 what has crossed
//
// k - 1 messages of V / (m k) across, (m - 1) k inside. (k - 1) V bytes cross, which is the least there is; the ranks
// of an island each take as many of another's. Parts of the blocks follow each other: one crosses while others are told
// inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double b = v / c.ranks();
  const double inside = (m - 1) * k * price.inside(b) + price.work(c.both() ? 0 : b);
  return pipelined(inside, (k - 1) * price.message(b), chunks);
}

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  const std::vector<Crossing> all = crossings(c, islands);
  const auto chunks = chunks_of(c, p, {0, c.whole()});
  const auto count = static_cast<int>(chunks.size());
  for (int link = 0; link < count; ++link) {
    const auto here = [&](const Crossing& x) { return part_of(x.range, link, count, c.element()); };
    steps.phase("across");
    for (const Crossing& x : all)
      steps.copy(x.owner, {c.in(), (c.both() ? c.begin(x.owner) : 0) + here(x).begin}, x.forwarder,
                 {c.out(), c.begin(x.owner) + here(x).begin}, here(x).bytes(), link);
    if (link == 0) {
      steps.phase("inside");
      for (int d = 0; d < c.ranks(); ++d) {
        for (int r = 0; r < c.ranks(); ++r) {
          if (d >= islands.size(islands.of(r)) || (d == 0 && c.both())) continue;
          steps.copy(r, {c.in(), c.both() ? c.begin(r) : 0}, islands.rank(islands.of(r), islands.place(r) + d),
                     {c.out(), c.begin(r)}, c.block(r), count);
        }
      }
    }
    steps.phase("told inside");
    for (const Crossing& x : all) {
      const Place place{c.out(), c.begin(x.owner) + here(x).begin};
      for (int d = 1; d < islands.size(islands.of(x.forwarder)); ++d)
        steps.copy(x.forwarder, place, islands.rank(islands.of(x.forwarder), islands.place(x.forwarder) + d), place,
                   here(x).bytes(), link);
    }
  }
}

const AlgorithmRegistration registration{[] { return hierarchical(CollectiveKind::allgather, seconds, list); }};

}  // namespace
}  // namespace tasuki
