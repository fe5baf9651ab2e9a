// Broadcast `hierarchical`: the root gives the ranks of its island a share each; these give the other islands a part
// each, which forward it to each other; then the ranks of every island tell each other their shares. V bytes, k islands
// of m ranks.
//
//   islands 0 1 | 2 3, root 0:    0 -> 1 its share    then    0 -> 2   1 -> 3    then    2 <-> 3
//
// 2 (m - 1) messages of V / m inside, up to 2 (k - 1) of V / (m (k - 1)) across. (k - 1) V bytes cross, which is the
// least there is; all ranks carry as many. Chunks of the message follow each other: one crosses while others are told
// inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double inside = 2 * (m - 1) * price.inside(v / m);
  const double across = k == 1 ? 0 : (2 * k - 3) * price.message(v / m / (k - 1));
  return pipelined(inside, across, chunks);
}

void list_chunk(const Collective& c, const Islands& islands, Range chunk, int link, Steps& steps) {
  const int home = islands.of(c.root());
  const auto data = [&](std::int64_t at) { return Place{c.out(), at}; };
  const auto give = [&](int from, int to, Range range) {
    steps.copy(from, data(range.begin), to, data(range.begin), range.bytes(), link);
  };
  steps.phase("to its island");
  for (const int r : islands.members(home))
    if (r != c.root()) give(c.root(), r, islands.share(chunk, r));
  std::vector<int> others;
  for (int i = 0; i < islands.count(); ++i)
    if (i != home) others.push_back(i);
  const auto count = static_cast<int>(others.size());
  const auto pieces = islands.pieces(chunk);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  steps.phase("to the islands");
  for (int i = 0; i < count; ++i)
    for (const Range piece : pieces)
      give(islands.holder(home, chunk, piece), islands.holder(others[at(i)], chunk, piece),
           part_of(piece, i, count, islands.element()));
  steps.phase("among islands");
  for (int d = 1; d < count; ++d)
    for (const Range piece : pieces)
      for (int i = 0; i < count; ++i)
        give(islands.holder(others[at(i)], chunk, piece), islands.holder(others[at((i + d) % count)], chunk, piece),
             part_of(piece, i, count, islands.element()));
  steps.phase("inside islands");
  for (int d = 1; d < c.ranks(); ++d) {
    for (int r = 0; r < c.ranks(); ++r) {
      if (d >= islands.size(islands.of(r))) continue;
      const int to = islands.rank(islands.of(r), islands.place(r) + d);
      if (to != c.root()) give(r, to, islands.share(chunk, r));
    }
  }
}

// The root gives its island one thing twice: the share of each rank, and its own to all.
void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  int link = 0;
  for (const Range chunk : chunks_of(c, p, {0, c.whole()})) list_chunk(c, islands, chunk, link++, steps);
}

const AlgorithmRegistration registration{[] { return hierarchical(CollectiveKind::broadcast, seconds, list); }};

}  // namespace
}  // namespace tasuki
