// Allreduce `hierarchical`: the ranks of an island add up, each its share of the vector; the shares are added up over
// the islands, each island one part of every share; then all goes back the same way. V bytes, k islands of m ranks.
//
//   islands 0 1 | 2 3:   0 <-> 1 a share   2 <-> 3    then    0 <-> 2   1 <-> 3 a part of it each, both ways twice
//                        then    0 <-> 1   2 <-> 3    the share that is done
//
// 2 (m - 1) messages of V / m inside, 2 (k - 1) of V / (m k) across. 2 (k - 1) V bytes cross, which is the least there
// is, all ranks carry as many of them. Chunks of the vector follow each other: one crosses while the next is added up
// inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double inside = 2 * (m - 1) * price.inside(v / m) + price.work((c.both() ? 1 : 2) * v);
  const double across = 2 * (k - 1) * price.message(v / m / k) + price.work((k - 1) * v / m / k);
  return pipelined(inside, across, chunks);
}

// One chunk; `link` keeps its messages apart from those of other chunks.
void list_chunk(const Collective& c, const Islands& islands, Range chunk, int link, Steps& steps) {
  const Place in = c.own(0);
  const auto out = [&](std::int64_t at) { return Place{c.out(), at}; };
  steps.phase("reduce inside");
  for (int d = 0; d < c.ranks(); ++d) {
    for (int r = 0; r < c.ranks(); ++r) {
      const int m = islands.size(islands.of(r));
      if (d >= m || (d == 0 && c.both())) continue;
      const Range mine = islands.share(chunk, r);
      const int from = islands.rank(islands.of(r), islands.place(r) + d);
      const Place src{in.buffer, mine.begin};
      d == 0 ? steps.copy(from, src, r, out(mine.begin), mine.bytes())
             : steps.combine(from, src, r, out(mine.begin), mine.bytes(), link);
    }
  }
  const int k = islands.count();
  const auto pieces = islands.pieces(chunk);
  const auto across = [&](auto&& step) {
    for (int d = 1; d < k; ++d) {
      for (const Range piece : pieces) {
        for (int i = 0; i < k; ++i) {
          const int sums = islands.holder(i, chunk, piece);
          const int other = islands.holder((i + d) % k, chunk, piece);
          step(sums, other, part_of(piece, i, k, c.element()));
        }
      }
    }
  };
  steps.phase("reduce across");
  across([&](int sums, int other, Range part) {
    steps.combine(other, out(part.begin), sums, out(part.begin), part.bytes(), link);
  });
  steps.phase("gather across");
  across([&](int sums, int other, Range part) {
    steps.copy(sums, out(part.begin), other, out(part.begin), part.bytes(), link);
  });
  steps.phase("gather inside");
  for (int d = 1; d < c.ranks(); ++d) {
    for (int r = 0; r < c.ranks(); ++r) {
      if (d >= islands.size(islands.of(r))) continue;
      const Range mine = islands.share(chunk, r);
      steps.copy(r, out(mine.begin), islands.rank(islands.of(r), islands.place(r) + d), out(mine.begin), mine.bytes(),
                 link);
    }
  }
}

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  int link = 0;
  for (const Range chunk : chunks_of(c, p, {0, c.whole()})) list_chunk(c, islands, chunk, link++, steps);
}

const AlgorithmRegistration registration{[] { return hierarchical(CollectiveKind::allreduce, seconds, list); }};

}  // namespace
}  // namespace tasuki
