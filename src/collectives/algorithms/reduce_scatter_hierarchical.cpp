// Reduce-scatter `hierarchical`: the ranks of an island add up what another island is to get, each its share, and send
// that to whom it belongs; there it meets what that island has added up. V bytes are all blocks, k islands of m ranks.
//
//   islands 0 1 | 2 3:   0 <-> 1   2 <-> 3 a block of the others' and one of their own    then    0 <-> 2   1 <-> 3
//
// (m - 1) k messages of V / (m k) inside, k - 1 across. (k - 1) V bytes cross, which is the least there is; the ranks
// of an island each carry as many. Parts follow each other: one crosses while the next is added up inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double b = v / c.ranks();
  const double inside = (m - 1) * k * price.inside(b) + price.work(m * k * b);
  return pipelined(inside, (k - 1) * (price.message(b) + price.work(b)), chunks);
}

// Ranks `forwarder` and those of its island add up what lies at `at` of `in`, at `dst` of the forwarder.
void add_up(const Collective& c, const Islands& islands, int forwarder, std::int64_t at, Place dst, std::int64_t bytes,
            int link, Steps& steps) {
  const int island = islands.of(forwarder);
  for (int d = 0; d < islands.size(island); ++d) {
    const int from = islands.rank(island, islands.place(forwarder) + d);
    d == 0 ? steps.copy(from, {c.in(), at}, forwarder, dst, bytes)
           : steps.combine(from, {c.in(), at}, forwarder, dst, bytes, link);
  }
}

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  const int sum = steps.scratch("sum", c.whole());
  const std::vector<Crossing> all = crossings(c, islands);
  const auto chunks = chunks_of(c, p, {0, c.whole()});
  const auto count = static_cast<int>(chunks.size());
  // In place the result lies where others may still have to read.
  const auto result = [&](int rank, std::int64_t at) {
    return c.both() ? Place{sum, c.begin(rank) + at} : Place{c.out(), at};
  };
  for (int link = 0; link < count; ++link) {
    const auto here = [&](const Crossing& x) { return part_of(x.range, link, count, c.element()); };
    steps.phase("for others");
    for (const Crossing& x : all) {
      const std::int64_t at = c.begin(x.owner) + here(x).begin;
      add_up(c, islands, x.forwarder, at, {sum, at}, here(x).bytes(), link, steps);
    }
    if (link == 0) {
      steps.phase("their own");
      for (int r = 0; r < c.ranks(); ++r) add_up(c, islands, r, c.begin(r), result(r, 0), c.block(r), count, steps);
    }
    steps.phase("across");
    for (const Crossing& x : all)
      steps.combine(x.forwarder, {sum, c.begin(x.owner) + here(x).begin}, x.owner, result(x.owner, here(x).begin),
                    here(x).bytes(), link);
  }
  for (int r = 0; r < c.ranks() && c.both(); ++r) steps.copy(r, result(r, 0), r, {c.out(), 0}, c.block(r));
}

const AlgorithmRegistration registration{[] { return hierarchical(CollectiveKind::reduce_scatter, seconds, list); }};

}  // namespace
}  // namespace tasuki
