// All-to-all `bruck`: at distance 1, 2, 4 ... a rank forwards all blocks that have as far to go, together. V bytes are
// all blocks of a rank.
//
//   0 -> 1 -> 2 -> 3 -> 0  what goes 1 or 3 far      then      0 <-> 2   1 <-> 3  what still has 2 to go
//
// ceil(log2 n) messages of about V / 2 one after the other, all packed and unpacked: for many small blocks.
#include <algorithm>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {
namespace {

double seconds(const Collective& c, const Parameters&, const Price& price) {
  double most = 0;
  for (int r = 0; r < c.ranks(); ++r) most = std::max(most, static_cast<double>(c.sent(r, c.ranks())));
  return doublings(c.ranks()) * (price.message(most / 2) + price.work(most / 2)) + price.work(most);
}

// A block on its way: from whom to whom, and where it is now.
struct Travelling {
  int from = 0;
  int to = 0;
  int at = 0;
  Place place = {};
};

void list(const Collective& c, const Parameters&, Steps& steps) {
  const int n = c.ranks();
  std::vector<Travelling> all;
  for (int from = 0; from < n; ++from)
    for (int d = 1; d < n; ++d) all.push_back({from, (from + d) % n, from, {c.in(), c.sent(from, (from + d) % n)}});
  // The blocks that have each round to go, of each rank one after the other.
  for (int distance = 1; distance < n; distance *= 2) {
    steps.phase("distance " + std::to_string(distance));
    const auto goes = [&](const Travelling& t) { return ((t.to - t.from + n) % n & distance) != 0; };
    std::vector<std::int64_t> packed(static_cast<std::size_t>(n), 0);
    for (const Travelling& t : all)
      if (goes(t)) packed[static_cast<std::size_t>(t.at)] += c.block(t.from, t.to);
    const std::int64_t most = *std::max_element(packed.begin(), packed.end());
    const int leaves = steps.scratch("leaves " + std::to_string(distance), most);
    const int came = steps.scratch("came " + std::to_string(distance), most);
    std::vector<std::int64_t> filled(packed.size(), 0);
    for (Travelling& t : all) {
      if (!goes(t)) continue;
      std::int64_t& offset = filled[static_cast<std::size_t>(t.at)];
      steps.copy(t.at, t.place, t.at, {leaves, offset}, c.block(t.from, t.to));
      t.place = {came, offset};
      offset += c.block(t.from, t.to);
      t.at = (t.at + distance) % n;
    }
    for (int r = 0; r < n; ++r)
      steps.copy(r, {leaves, 0}, (r + distance) % n, {came, 0}, packed[static_cast<std::size_t>(r)]);
  }
  // In place all that leaves has been packed by now.
  for (const Travelling& t : all)
    steps.copy(t.to, t.place, t.to, {c.out(), c.received(t.from, t.to)}, c.block(t.from, t.to));
  for (int r = 0; r < n && !c.both(); ++r)
    steps.copy(r, {c.in(), c.sent(r, r)}, r, {c.out(), c.received(r, r)}, c.block(r, r));
}

const AlgorithmRegistration registration{[] {
  return Algorithm{.name = "bruck",
                   .collective = CollectiveKind::alltoall,
                   .complexity = 2,
                   .worth_trying = more_than_a_pair,
                   .seconds = seconds,
                   .list = list};
}};

}  // namespace
}  // namespace tasuki
