// Parts with trees: see tree_parts.hpp.
#include "collectives/tree_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;  // a multiple of every element

std::int64_t part_begin(std::int64_t bytes, int trees, int t) {
  return t == trees ? bytes : bytes * t / trees / kLine * kLine;
}

// Chunks that may pay. A GPU's blocks take about a microsecond from one to the next, and all rounds are steps of its
// program.
std::vector<std::int64_t> chunks_for(const Collective& c, std::int64_t part) {
  constexpr std::int64_t kKiB = 1 << 10;
  if (!c.on_gpu()) return {8 * kKiB, 32 * kKiB, 128 * kKiB, 512 * kKiB, part};
  std::vector<std::int64_t> chunks;
  for (const std::int64_t chunk : {256 * kKiB, 1024 * kKiB, 4096 * kKiB})
    if (part / chunk <= 128) chunks.push_back(chunk);
  chunks.push_back(part);
  return chunks;
}

}  // namespace

std::vector<TreePart> tree_parts(const Collective& c, const Parameters& p) {
  std::vector<TreePart> parts;
  for (int t = 0; t < p.trees; ++t) {
    const std::int64_t begin = part_begin(c.whole(), p.trees, t);
    const std::int64_t bytes = part_begin(c.whole(), p.trees, t + 1) - begin;
    if (bytes > 0) parts.push_back({begin, bytes, make_tree(c.island(), c.root(), p.arity, t, p.trees), {}});
  }
  for (int t = 0; t < p.trees && t < std::ssize(parts); ++t)
    parts[static_cast<std::size_t>(t)].name = fmt::format("part {} of {}", t + 1, parts.size());
  return parts;
}

std::vector<Parameters> tree_settings(const Collective& c, const Parameters& wanted) {
  const std::int64_t bytes = std::max<std::int64_t>(c.whole(), 1);
  std::vector<Parameters> all;
  for (const int trees : {1, 2, 3}) {
    if (wanted.trees > 0 ? trees != 1 : trees > 1 && bytes < 64 * 1024) continue;
    for (const int arity : {1, 2, 3, 4}) {
      if (wanted.arity > 0 ? arity != 1 : arity > std::max(c.ranks() - 1, 1)) continue;
      Parameters p{wanted.trees > 0 ? wanted.trees : trees, wanted.arity > 0 ? wanted.arity : arity, 0};
      const std::int64_t part = (bytes + p.trees - 1) / p.trees;
      for (const std::int64_t chunk : chunks_for(c, part)) {
        if (wanted.chunk > 0 ? chunk != part : chunk > part) continue;
        p.chunk = std::max<std::int64_t>(wanted.chunk > 0 ? wanted.chunk : chunk, 1);
        if (all.empty() || all.back() != p) all.push_back(p);
      }
    }
  }
  return all;
}

double tree_seconds(const Collective& c, const Parameters& p, const Price& price) {
  const Tree tree = make_tree(c.island(), c.root(), p.arity, 0, p.trees);
  std::size_t most = 0;
  for (const auto& children : tree.children) most = std::max(most, children.size());
  const std::int64_t part = std::max<std::int64_t>((c.whole() + p.trees - 1) / p.trees, 1);
  const std::int64_t chunk = std::min(p.chunk, part);
  const auto bytes = static_cast<double>(chunk);
  const double step = price.message(bytes) + (c.reduces() ? price.work(bytes) : 0);
  const std::int64_t rounds = (part + chunk - 1) / chunk;
  const auto chunks = static_cast<double>(rounds);
  // Parts share the cores of the ranks they meet on; with trees turned against each other that is about the inner
  // ranks.
  const double sharing = 1.0 + 0.5 * (p.trees - 1);
  return (tree.depth() + chunks - 1) * static_cast<double>(most) * step * sharing + (p.trees - 1) * price.latency;
}

}  // namespace tasuki
