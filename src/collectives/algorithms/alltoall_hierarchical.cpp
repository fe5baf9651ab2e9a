// All-to-all `hierarchical`: what the ranks of an island have for a rank of another one meets on one of them, who sends
// it all at once; each rank of the island does so for other ranks. Blocks for the own island go straight there. V bytes
// are all blocks of a rank, k islands of m ranks.
//
//   islands 0 1 | 2 3:   0 -> 1 for 3   1 -> 0 for 2   2 -> 3 for 1   3 -> 2 for 0    then    0 <-> 2   1 <-> 3
//
// (m - 1) messages of V / m inside, and k - 1 of V / k across instead of (k - 1) m; every block crosses once. For many
// small blocks, where messages between islands are dear.
#include "collectives/algorithm.hpp"
#include "collectives/alltoall_blocks.hpp"
#include "collectives/islands.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  const Islands islands(c);
  const int k = islands.count();
  const double m = static_cast<double>(c.ranks()) / k;
  double most = 0;
  for (int r = 0; r < c.ranks(); ++r) most = std::max(most, static_cast<double>(c.sent(r, c.ranks())));
  return (m - 1) * price.inside(most / m) + price.work(most / m) + (k - 1) * price.message(most / k) +
         price.work(c.both() ? most : 0);
}

// What meets on a rank: for each rank of another island that it sends to, the blocks of its island one after the other.
class Meeting {
 public:
  Meeting(const Collective& c, const Islands& islands) : c_(c), islands_(islands), used_(at(c.ranks()), 0) {
    begin_.assign(at(islands.count() * c.ranks()), 0);
    for (int island = 0; island < islands.count(); ++island) {
      for (int to = 0; to < c.ranks(); ++to) {
        if (islands.of(to) == island) continue;
        std::int64_t& used = used_[at(forwarder(island, to))];
        begin_[at(island * c.ranks() + to)] = used;
        for (const int from : islands.members(island)) used += c.block(from, to);
      }
    }
  }
  /// Who carries what the island has for the rank.
  int forwarder(int island, int to) const { return islands_.rank(island, islands_.place(to)); }
  std::int64_t begin(int island, int to) const { return begin_[at(island * c_.ranks() + to)]; }
  std::int64_t most() const { return *std::max_element(used_.begin(), used_.end()); }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  const Collective& c_;
  const Islands& islands_;
  std::vector<std::int64_t> used_;   // per rank
  std::vector<std::int64_t> begin_;  // [island][receiver]
};

void list(const Collective& c, const Parameters&, Steps& steps) {
  const Islands islands(c);
  const Meeting meeting(c, islands);
  const Place from = staged_blocks(c, steps);
  const int met = steps.scratch("met", meeting.most());
  steps.phase("meet inside");
  for (int island = 0; island < islands.count(); ++island) {
    for (int to = 0; to < c.ranks(); ++to) {
      if (islands.of(to) == island) continue;
      std::int64_t at = meeting.begin(island, to);
      for (const int r : islands.members(island)) {
        steps.copy(r, {from.buffer, c.sent(r, to)}, meeting.forwarder(island, to), {met, at}, c.block(r, to));
        at += c.block(r, to);
      }
    }
  }
  steps.phase("across");
  for (int d = 1; d < islands.count(); ++d) {
    for (int to = 0; to < c.ranks(); ++to) {
      const int island = (islands.of(to) + d) % islands.count();
      std::int64_t at = meeting.begin(island, to);
      const auto& members = islands.members(island);
      // Blocks of ranks that follow each other lie one after the other with the receiver, too.
      for (std::size_t i = 0; i < members.size();) {
        std::int64_t bytes = 0;
        std::size_t end = i;
        do bytes += c.block(members[end++], to);
        while (end < members.size() && members[end] == members[end - 1] + 1);
        steps.copy(meeting.forwarder(island, to), {met, at}, to, {c.out(), c.received(members[i], to)}, bytes);
        at += bytes;
        i = end;
      }
    }
  }
  steps.phase("inside");
  for (int d = 1; d < c.ranks(); ++d) {
    for (int r = 0; r < c.ranks(); ++r) {
      if (d >= islands.size(islands.of(r))) continue;
      const int to = islands.rank(islands.of(r), islands.place(r) + d);
      steps.copy(r, {from.buffer, c.sent(r, to)}, to, {c.out(), c.received(r, to)}, c.block(r, to), 1);
    }
  }
  keep_blocks(c, steps);
}

const AlgorithmRegistration registration{[] {
  Algorithm algorithm = hierarchical(CollectiveKind::alltoall, seconds, list);
  algorithm.settings = nullptr;  // it has no chunks
  return algorithm;
}};

}  // namespace
}  // namespace tasuki
