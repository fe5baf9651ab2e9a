// Reduce `hierarchical`: the ranks of an island add up, each its share of the vector; the shares of the other islands
// go to those who have them in the root's, who add them up and give them to the root. V bytes, k islands of m ranks.
//
//   islands 0 1 | 2 3, root 0:   0 <-> 1 a share   2 <-> 3    then    2 -> 0   3 -> 1    then    1 -> 0
//
// m - 1 messages of V / m inside, k - 1 across, and m - 1 to the root. (k - 1) V bytes cross, which is the least there
// is, all ranks carry as many of them. Chunks of the vector follow each other: one crosses while the next is added up
// inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double inside = 2 * (m - 1) * price.inside(v / m) + price.work(v);
  return pipelined(inside, (k - 1) * (price.message(v / m) + price.work(v / m)), chunks);
}

// One chunk; `link` keeps its messages apart from those of other chunks.
void list_chunk(const Collective& c, const Islands& islands, int sum, Range chunk, int link, Steps& steps) {
  const int home = islands.of(c.root());
  const auto has = [&](int rank, std::int64_t at) { return Place{rank == c.root() ? c.out() : sum, at}; };
  const auto gives = [&](int rank, std::int64_t at) { return Place{c.own(rank).buffer, at}; };
  steps.phase("reduce inside");
  for (int r = 0; r < c.ranks(); ++r) {
    const Range mine = islands.share(chunk, r);
    if (gives(r, 0).buffer != has(r, 0).buffer)
      steps.copy(r, gives(r, mine.begin), r, has(r, mine.begin), mine.bytes());
  }
  for (int d = 1; d < c.ranks(); ++d) {
    for (int r = 0; r < c.ranks(); ++r) {
      if (d >= islands.size(islands.of(r))) continue;
      const Range mine = islands.share(chunk, r);
      const int from = islands.rank(islands.of(r), islands.place(r) + d);
      steps.combine(from, gives(from, mine.begin), r, has(r, mine.begin), mine.bytes(), link);
    }
  }
  steps.phase("to the root's island");
  const auto pieces = islands.pieces(chunk);
  for (int d = 1; d < islands.count(); ++d) {
    for (const Range piece : pieces) {
      const int from = islands.holder((home + d) % islands.count(), chunk, piece);
      const int to = islands.holder(home, chunk, piece);
      steps.combine(from, has(from, piece.begin), to, has(to, piece.begin), piece.bytes(), link);
    }
  }
  steps.phase("to the root");
  for (const int r : islands.members(home)) {
    const Range mine = islands.share(chunk, r);
    if (r != c.root()) steps.copy(r, has(r, mine.begin), c.root(), {c.out(), mine.begin}, mine.bytes(), link);
  }
}

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  const int sum = steps.scratch("sum", c.whole());
  int link = 0;
  for (const Range chunk : chunks_of(c, p, {0, c.whole()})) list_chunk(c, islands, sum, chunk, link++, steps);
}

// On hosts also within one island: all cores add up a large vector, where the other algorithms leave that to the root.
bool worth_trying(const Collective& c) {
  constexpr std::int64_t kLarge = 512 << 10;
  return has_hierarchy(c) || (!c.on_gpu() && Islands(c).count() == 1 && c.whole() >= kLarge);
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm = hierarchical(CollectiveKind::reduce, seconds, list);
  algorithm.worth_trying = worth_trying;
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
