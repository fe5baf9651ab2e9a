// Scan and exscan `hierarchical`, where the ranks of islands follow each other: every island scans by itself, along its
// ranks; what it has in all, behind what all before it have, goes on to the next island, each rank carrying a share;
// there the ranks tell each other their shares, and put them before what they have. V bytes, k islands of m ranks.
//
//   islands 0 1 | 2 3:   0 -> 1   2 -> 3    then    1 -> 0 a share    then    0 -> 2   1 -> 3    then    2 <-> 3
//
// m - 1 messages of V inside, and for each island one of V / m inside, one across. (k - 1) V bytes cross, which is the
// least there is. Chunks of the vector follow each other: one crosses while the next is added up inside.
#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters& p, const Price& price) {
  const auto [k, m, chunks, v] = hierarchy_sizes(c, p);
  const double inside =
      (m - 1) * (price.inside(v) + price.work(2 * v)) + (m - 1) * price.inside(v / m) + price.work(2 * v);
  const double across = (k - 1) * (price.message(v / m) + price.inside(v / m) + price.work(2 * v / m));
  return pipelined(inside, across, chunks);
}

struct Room {
  int came = 0;    ///< what the rank below in the island has
  int inside = 0;  ///< that, and the rank's own
  int before = 0;  ///< what the islands before have
  int passes = 0;  ///< that, and the own island's: its share
  int result = 0;  ///< in place
};

void list_chunk(const Collective& c, const Islands& islands, const Room& room, Range chunk, int link, Steps& steps) {
  const bool exclusive = c.kind() == CollectiveKind::exscan;
  const int k = islands.count();
  const std::int64_t at = chunk.begin;
  const std::int64_t bytes = chunk.bytes();
  // A rank's own behind those of its island below it.
  const auto has = [&](int rank) { return Place{islands.place(rank) == 0 ? c.in() : room.inside, at}; };
  steps.phase("scan inside");
  for (int i = 0; i < k; ++i) {
    for (int p = 1; p < islands.size(i); ++p) {
      const int r = islands.rank(i, p);
      steps.copy(islands.rank(i, p - 1), has(islands.rank(i, p - 1)), r, {room.came, at}, bytes, link);
      steps.copy(r, {room.came, at}, r, {room.inside, at}, bytes);
      steps.combine(r, {c.in(), at}, r, {room.inside, at}, bytes);
    }
  }
  for (int i = 0; i + 1 < k; ++i) {
    const int last = islands.rank(i, islands.size(i) - 1);
    steps.phase("add up the island");
    for (const int r : islands.members(i)) {
      const Range mine = islands.share(chunk, r);
      const Place passes{room.passes, mine.begin};
      const Place all{has(last).buffer, mine.begin};
      if (i > 0) steps.copy(r, {room.before, mine.begin}, r, passes, mine.bytes());
      i > 0 ? steps.combine(last, all, r, passes, mine.bytes(), link)
            : steps.copy(last, all, r, passes, mine.bytes(), link);
    }
    steps.phase("across");
    for (const Range piece : islands.pieces(chunk))
      steps.copy(islands.holder(i, chunk, piece), {room.passes, piece.begin}, islands.holder(i + 1, chunk, piece),
                 {room.before, piece.begin}, piece.bytes(), link);
  }
  steps.phase("tell inside");
  for (int i = 1; i < k; ++i) {
    for (int d = 1; d < islands.size(i); ++d) {
      for (const int r : islands.members(i)) {
        const Place mine{room.before, islands.share(chunk, r).begin};
        steps.copy(r, mine, islands.rank(i, islands.place(r) + d), mine, islands.share(chunk, r).bytes(), link);
      }
    }
  }
  const Place out{c.out(), at};
  for (int r = 0; r < c.ranks(); ++r) {
    const bool first = islands.place(r) == 0;
    const Place own = exclusive ? Place{room.came, at} : has(r);
    const bool adds = !exclusive || !first;  // it has something of its own island
    if (islands.of(r) == 0) {
      if (adds && own.buffer != out.buffer) steps.copy(r, own, r, out, bytes);
      continue;
    }
    const Place result = c.both() && adds ? Place{room.result, at} : out;
    steps.copy(r, {room.before, at}, r, result, bytes);
    if (adds) steps.combine(r, own, r, result, bytes);
    if (result.buffer != out.buffer) steps.copy(r, result, r, out, bytes);
  }
}

void list(const Collective& c, const Parameters& p, Steps& steps) {
  const Islands islands(c);
  Room room;
  for (const auto& [member, name] :
       {std::pair{&Room::came, "came"}, std::pair{&Room::inside, "inside"}, std::pair{&Room::before, "before"},
        std::pair{&Room::passes, "passes"}, std::pair{&Room::result, "result"}})
    room.*member = steps.scratch(name, c.whole());
  int link = 0;
  for (const Range chunk : chunks_of(c, p, {0, c.whole()})) list_chunk(c, islands, room, chunk, link++, steps);
}

std::string why_not(const Collective& c, const Parameters&) {
  if (Islands(c).in_rank_order()) return {};
  return "the ranks of islands do not follow each other, and scans combine in rank order";
}

template <CollectiveKind kind>
Algorithm make() {
  Algorithm algorithm = hierarchical(kind, seconds, list);
  algorithm.in_order = true;
  algorithm.why_not = why_not;
  return algorithm;
}

const AlgorithmRegistration of_scan{make<CollectiveKind::scan>};
const AlgorithmRegistration of_exscan{make<CollectiveKind::exscan>};

}  // namespace
}  // namespace tasuki
