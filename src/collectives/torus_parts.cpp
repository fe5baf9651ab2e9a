// Parts along trees over a torus: see torus_parts.hpp.
#include "collectives/torus_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/torus_trees.hpp"

namespace tasuki {

namespace {

constexpr int kManyRanks = 128;
constexpr int kArity = 3;  // the usual one: shallow trees in which nobody sends more often than the root

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// A lane sends to one child after the other. So a tree's part runs in several lanes, which begin with different
// children: then all links are in use at once. With one child, one lane receives while another one sends.
int strands_of(const Parameters& p) {
  return std::clamp(p.arity, 2, 3);
}

// Trees of ranks. In a host the rank that it is entered by serves the others, one after the other.
std::vector<Tree> trees_of(const Collective& c, int trees, int arity) {
  const HostTorus& torus = c.torus();
  const int root = torus.point[at(c.root())];
  std::vector<std::vector<int>> members;
  for (int r = 0; r < c.ranks(); ++r) {
    members.resize(std::max(members.size(), at(torus.point[at(r)]) + 1));
    members[at(torus.point[at(r)])].push_back(r);
  }
  std::vector<Tree> all;
  for (const Tree& hosts : torus_trees(torus.extents, root, trees, arity)) {
    const auto which = static_cast<int>(all.size());
    const auto first = [&](int point) {
      const auto& ranks = members[at(point)];
      return point == root ? c.root() : ranks[at(which) % ranks.size()];
    };
    Tree tree;
    tree.parent.assign(at(c.ranks()), -1);
    tree.children.resize(at(c.ranks()));
    const auto hang = [&](int rank, int parent) {
      tree.parent[at(rank)] = parent;
      tree.children[at(parent)].push_back(rank);
    };
    // Other hosts are served first, because these ways are the longest.
    for (int p = 0; p < static_cast<int>(members.size()); ++p)
      for (const int child : hosts.children[at(p)]) hang(first(child), first(p));
    for (int p = 0; p < static_cast<int>(members.size()); ++p)
      for (const int rank : members[at(p)])
        if (rank != first(p)) hang(rank, first(p));
    all.push_back(std::move(tree));
  }
  return all;
}

std::vector<Parameters> settings(const Collective& c, const Parameters& wanted) {
  const std::int64_t bytes = std::max<std::int64_t>(c.whole(), 1);
  std::vector<Parameters> all;
  const int most = torus_links(c.torus().extents);
  for (int trees = 1; trees <= most; ++trees) {
    // Of large tori, whose trees take long to find, only as many as a host can drive links.
    const int only = wanted.trees > 0 ? wanted.trees : c.ranks() > kManyRanks ? std::min(c.torus().rails, most) : trees;
    if (trees != only) continue;
    const std::int64_t part = (bytes + trees - 1) / trees;
    for (const std::int64_t chunk : tree_chunks(c, part, wanted.chunk))
      for (const int arity : wanted.arity > 0 ? std::vector{wanted.arity} : std::vector{1, kArity})
        all.push_back({trees, arity, chunk});
  }
  return all;
}

// The first chunk goes down the deepest tree; then the host that sends most sends one chunk after the other, as many at
// a time as it can drive links.
double seconds(const Collective& c, const Parameters& p, const Price& price) {
  int depth = 0;
  std::size_t most = 0, sends = 0;
  std::vector<std::size_t> sum(at(c.ranks()), 0);
  for (const Tree& tree : trees_of(c, p.trees, p.arity)) {
    depth = std::max(depth, tree.depth());
    for (std::size_t r = 0; r < tree.children.size(); ++r) {
      most = std::max(most, tree.children[r].size());
      sends = std::max(sends, sum[r] += tree.children[r].size());
    }
  }
  const std::int64_t part = std::max<std::int64_t>((c.whole() + p.trees - 1) / p.trees, 1);
  const std::int64_t chunk = std::min(p.chunk, part);
  const std::int64_t chunks = (part + chunk - 1) / chunk;
  const auto rounds = static_cast<double>(chunks);
  const auto bytes = static_cast<double>(chunk);
  const double at_once = std::max(static_cast<double>(sends) / c.torus().rails, 1.0);
  const double step = price.message(bytes) + (c.reduces() ? price.work(bytes) : 0);
  return depth * step +
         (rounds - 1) * std::max(at_once * bytes * price.second_per_byte, static_cast<double>(most) * price.latency) +
         (p.trees - 1) * price.latency;
}

std::string why_not(const Collective& c, const Parameters& wanted) {
  if (c.torus().extents.empty())
    return "the machine's hosts are not joined by a torus that has a host at every point; see 'outside' in its file";
  const int most = torus_links(c.torus().extents);
  if (wanted.trees <= most) return {};
  return fmt::format("option 'trees' is {}, but {} links leave a host of this torus, and so many trees share none",
                     wanted.trees, most);
}

}  // namespace

std::vector<TreePart> torus_parts(const Collective& c, const Parameters& p) {
  std::vector<TreePart> strands;
  for (const TreePart& part : parts_along(c, trees_of(c, p.trees, p.arity))) {
    const int count = strands_of(p);
    for (int s = 0; s < count; ++s) {
      TreePart strand = part;
      const std::int64_t unit = c.cut_unit();
      const auto cut = [&](int i) { return i == count ? part.bytes : part.bytes * i / count / unit * unit; };
      strand.offset = part.offset + cut(s);
      strand.bytes = cut(s + 1) - cut(s);
      if (strand.bytes == 0) continue;
      for (auto& children : strand.tree.children)
        if (!children.empty())
          std::rotate(children.begin(), children.begin() + s % std::ssize(children), children.end());
      if (count > 1) strand.name += fmt::format(", strand {}", s + 1);
      strands.push_back(std::move(strand));
    }
  }
  return strands;
}

Algorithm over_torus(CollectiveKind kind, int complexity, decltype(Algorithm::list) list) {
  return Algorithm{.name = "torus",
                   .collective = kind,
                   .complexity = complexity,
                   .why_not = why_not,
                   .over_trees = true,
                   .settings = settings,
                   .seconds = seconds,
                   .list = list};
}

}  // namespace tasuki
