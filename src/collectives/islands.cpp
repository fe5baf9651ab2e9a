// Islands: see islands.hpp.
#include "collectives/islands.hpp"

#include <algorithm>
#include <map>

namespace tasuki {

namespace {

constexpr std::int64_t kMostChunks = 8;  // each takes links between two ranks, of which there are few
constexpr std::int64_t kSmallestChunk = 64 << 10;

}  // namespace

Range part_of(Range whole, int which, int of, std::int64_t element) {
  const std::int64_t count = whole.bytes() / element;
  return {whole.begin + count * which / of * element, whole.begin + count * (which + 1) / of * element};
}

Range overlap(Range a, Range b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Islands::Islands(const Collective& c) : element_(c.element()) {
  std::map<int, int> index;
  for (int rank = 0; rank < c.ranks(); ++rank) {
    const int label = c.island()[static_cast<std::size_t>(rank)];
    const int island = index.try_emplace(label, count()).first->second;
    if (island == count()) members_.emplace_back();
    auto& members = members_[static_cast<std::size_t>(island)];
    island_.push_back(island);
    place_.push_back(static_cast<int>(members.size()));
    members.push_back(rank);
  }
}

std::vector<Range> Islands::pieces(Range whole) const {
  std::vector<std::int64_t> cuts;
  for (int island = 0; island < count(); ++island)
    for (int place = 0; place < size(island); ++place)
      cuts.push_back(part_of(whole, place, size(island), element_).end);
  std::sort(cuts.begin(), cuts.end());
  std::vector<Range> pieces;
  std::int64_t begin = whole.begin;
  for (const std::int64_t cut : cuts) {
    if (cut > begin) pieces.push_back({begin, cut});
    begin = cut;
  }
  return pieces;
}

int Islands::holder(int island, Range whole, Range piece) const {
  for (const int rank : members(island)) {
    const Range mine = share(whole, rank);
    if (mine.begin <= piece.begin && piece.end <= mine.end && mine.bytes() > 0) return rank;
  }
  return members(island).front();
}

bool Islands::in_rank_order() const {
  return std::is_sorted(island_.begin(), island_.end());
}

bool has_hierarchy(const Collective& c) {
  const Islands islands(c);
  return islands.count() > 1 && islands.count() < c.ranks();
}

std::vector<Parameters> chunk_settings(const Collective& c, const Parameters& wanted) {
  const std::int64_t whole = std::max<std::int64_t>(c.whole(), 1);
  const std::int64_t least = (whole + kMostChunks - 1) / kMostChunks;
  std::vector<Parameters> all;
  for (std::int64_t chunks = 1; chunks <= kMostChunks; chunks *= 2) {
    const std::int64_t chunk = (whole + chunks - 1) / chunks;
    if (chunks > 1 && (wanted.chunk > 0 || chunk < kSmallestChunk)) break;
    all.push_back({0, 0, wanted.chunk > 0 ? std::clamp(wanted.chunk, least, whole) : chunk});
  }
  return all;
}

int chunk_count(const Collective& c, const Parameters& p) {
  const std::int64_t all = std::max<std::int64_t>(c.whole(), 1);
  return static_cast<int>((all + p.chunk - 1) / std::max<std::int64_t>(p.chunk, 1));
}

std::vector<Range> chunks_of(const Collective& c, const Parameters& p, Range whole) {
  const int count = chunk_count(c, p);
  std::vector<Range> chunks;
  for (int i = 0; i < count; ++i) chunks.push_back(part_of(whole, i, count, c.element()));
  return chunks;
}

std::vector<Crossing> crossings(const Collective& c, const Islands& islands) {
  std::vector<Crossing> all_crossings;
  const int k = islands.count();
  for (int d = 1; d < k; ++d) {
    for (int island = 0; island < k; ++island) {
      Range all;
      for (const int r : islands.members(island)) all.end += c.block(r);
      std::int64_t before = 0;
      for (const int owner : islands.members(island)) {
        for (const int forwarder : islands.members((island + d) % k)) {
          const Range share = overlap(islands.share(all, forwarder), {before, before + c.block(owner)});
          if (share.bytes() > 0)
            all_crossings.push_back({{share.begin - before, share.end - before}, owner, forwarder});
        }
        before += c.block(owner);
      }
    }
  }
  return all_crossings;
}

std::vector<Crossing> crossings_of_root(const Collective& c, const Islands& islands) {
  std::vector<Crossing> all = crossings(c, islands);
  const int home = islands.of(c.root());
  std::erase_if(all, [&](const Crossing& x) { return islands.of(x.forwarder) != home; });
  return all;
}

// All bytes go through the root, and those of other islands through its island, in parallel.
double through_root_seconds(const Collective& c, const Parameters& p, const Price& price) {
  const Islands islands(c);
  const int k = islands.count();
  const double m = islands.size(islands.of(c.root()));
  const auto chunks = static_cast<double>(chunk_count(c, p));
  const double v = static_cast<double>(c.whole()) / chunks;
  const double inside = (m - 1) * k * price.latency_inside + (m - 1) / m * v * price.second_per_byte_inside;
  const double across = (k - 1) * price.message(v / k / m);
  return pipelined(inside, across, chunk_count(c, p));
}

Algorithm hierarchical(CollectiveKind kind, decltype(Algorithm::seconds) seconds, decltype(Algorithm::list) list) {
  return Algorithm{.name = "hierarchical",
                   .collective = kind,
                   .complexity = 4,
                   .worth_trying = has_hierarchy,
                   .settings = chunk_settings,
                   .seconds = seconds,
                   .list = list};
}

double pipelined(double inside, double across, std::int64_t chunks) {
  return inside + across + static_cast<double>(chunks - 1) * std::max(inside, across);
}

std::int64_t least_across(const Collective& c) {
  const Islands islands(c);
  const std::int64_t others = islands.count() - 1;
  std::int64_t sum = 0;
  switch (c.kind()) {
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::allgather:
    case CollectiveKind::reduce_scatter:
      return others * c.whole();
    case CollectiveKind::allreduce:
      return 2 * others * c.whole();
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      for (int r = 0; r < c.ranks(); ++r)
        if (islands.of(r) != islands.of(c.root())) sum += c.block(r);
      return sum;
    case CollectiveKind::alltoall:
      for (int from = 0; from < c.ranks(); ++from)
        for (int to = 0; to < c.ranks(); ++to)
          if (islands.of(from) != islands.of(to)) sum += c.block(from, to);
      return sum;
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      return islands.in_rank_order() ? others * c.whole() : -1;
    case CollectiveKind::barrier:
      return -1;
  }
  return -1;
}

HierarchySizes hierarchy_sizes(const Collective& collective, const Parameters& parameters) {
  HierarchySizes sizes;
  sizes.islands = Islands(collective).count();
  sizes.members = static_cast<double>(collective.ranks()) / sizes.islands;
  sizes.chunks = std::ssize(chunks_of(collective, parameters, {0, collective.whole()}));
  sizes.chunk = static_cast<double>(collective.whole()) / static_cast<double>(sizes.chunks);
  return sizes;
}

}  // namespace tasuki
