// Parts with trees: see tree_parts.hpp.
#include "collectives/tree_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tasuki {

namespace {

std::int64_t part_begin(std::int64_t bytes, int trees, int t, std::int64_t unit) {
  return t == trees ? bytes : bytes * t / trees / unit * unit;
}

std::int64_t largest_part(std::int64_t bytes, int trees, std::int64_t unit) {
  std::int64_t largest = 0;
  for (int t = 0; t < trees; ++t)
    largest = std::max(largest, part_begin(bytes, trees, t + 1, unit) - part_begin(bytes, trees, t, unit));
  return largest;
}

// Chunks that may pay. A GPU's blocks take some microseconds from one to the next, and all rounds are steps of its
// program.
std::vector<std::int64_t> chunks_for(const Collective& c, std::int64_t part) {
  constexpr std::int64_t kKiB = 1 << 10;
  if (!c.on_gpu()) return {8 * kKiB, 32 * kKiB, 128 * kKiB, 512 * kKiB, part};
  std::vector<std::int64_t> chunks;
  for (const std::int64_t chunk : {256 * kKiB, 1024 * kKiB, 2048 * kKiB, 4096 * kKiB, 8192 * kKiB})
    if (part / chunk <= 128) chunks.push_back(chunk);
  chunks.push_back(part);  // in LL lines, which go on as they come
  return chunks;
}

void spread(const Collective& c, const TreePart& part, int rank, Steps& steps) {
  const Place data{c.out(), part.offset};
  const auto& children = part.tree.children[static_cast<std::size_t>(rank)];
  for (const int child : children) steps.copy(rank, data, child, data, part.bytes);
  for (const int child : children) spread(c, part, child, steps);
}

// What `rank` and those below it in the tree give, the leaves first.
void gather(const Collective& c, const TreePart& part, int rank, int sum, Steps& steps) {
  const auto has = [&](int r) {
    if (r == c.root()) return Place{c.out(), part.offset};
    const bool adds = !part.tree.children[static_cast<std::size_t>(r)].empty();
    return Place{adds ? sum : c.own(r).buffer, part.offset};
  };
  const auto& children = part.tree.children[static_cast<std::size_t>(rank)];
  for (const int child : children) gather(c, part, child, sum, steps);
  const Place own{c.own(rank).buffer, part.offset};
  if (has(rank).buffer != own.buffer) steps.copy(rank, own, rank, has(rank), part.bytes);
  for (const int child : children) steps.combine(child, has(child), rank, has(rank), part.bytes);
}

std::vector<Tree> trees_of(const Collective& c, const Parameters& p) {
  std::vector<Tree> trees;
  for (int t = 0; t < p.trees; ++t) trees.push_back(make_tree(c.island(), c.root(), p.arity, t, p.trees));
  return trees;
}

}  // namespace

std::vector<TreePart> parts_along(const Collective& c, std::vector<Tree> trees) {
  std::vector<TreePart> parts;
  const auto count = static_cast<int>(trees.size());
  for (int t = 0; t < count; ++t) {
    const std::int64_t begin = part_begin(c.whole(), count, t, c.cut_unit());
    const std::int64_t bytes = part_begin(c.whole(), count, t + 1, c.cut_unit()) - begin;
    if (bytes > 0) parts.push_back({begin, bytes, std::move(trees[static_cast<std::size_t>(t)]), {}});
  }
  for (std::size_t t = 0; t < parts.size(); ++t) parts[t].name = fmt::format("part {} of {}", t + 1, parts.size());
  return parts;
}

std::vector<TreePart> tree_parts(const Collective& c, const Parameters& p) {
  return parts_along(c, trees_of(c, p));
}

void spread_parts(const Collective& c, const std::vector<TreePart>& parts, std::int64_t chunk, Steps& steps) {
  for (const TreePart& part : parts) {
    steps.phase(part.name);
    steps.begin_chunks(chunk);
    spread(c, part, c.root(), steps);
    steps.end();
  }
}

void gather_parts(const Collective& c, const std::vector<TreePart>& parts, std::int64_t chunk, Steps& steps) {
  const int sum = steps.scratch("sum", c.whole());
  for (const TreePart& part : parts) {
    steps.phase(part.name);
    steps.begin_chunks(chunk);
    gather(c, part, c.root(), sum, steps);
    steps.end();
  }
}

std::vector<std::int64_t> tree_chunks(const Collective& c, std::int64_t part, std::int64_t wanted) {
  if (wanted > 0) return {wanted};
  std::vector<std::int64_t> chunks;
  for (const std::int64_t chunk : chunks_for(c, part))
    if (chunk <= part && (chunks.empty() || chunks.back() != chunk)) chunks.push_back(chunk);
  return chunks;
}

std::vector<Parameters> tree_settings(const Collective& c, const Parameters& wanted) {
  const std::int64_t bytes = std::max<std::int64_t>(c.whole(), 1);
  std::vector<Parameters> all;
  std::vector<std::vector<Tree>> seen;
  for (const int trees : {1, 2, 3}) {
    if (wanted.trees > 0 ? trees != 1 : trees > 1 && bytes < 64 * 1024) continue;
    for (const int arity : {1, 2, 3, 4}) {
      if (wanted.arity > 0 ? arity != 1 : arity > std::max(c.ranks() - 1, 1)) continue;
      Parameters p{wanted.trees > 0 ? wanted.trees : trees, wanted.arity > 0 ? wanted.arity : arity, 0};
      // Where few ranks are in an island, and few islands, several arities make the same trees.
      std::vector<Tree> made = trees_of(c, p);
      if (std::find(seen.begin(), seen.end(), made) != seen.end()) continue;
      seen.push_back(std::move(made));
      for (const std::int64_t chunk : tree_chunks(c, largest_part(bytes, p.trees, c.cut_unit()), wanted.chunk)) {
        p.chunk = chunk;
        all.push_back(p);
      }
    }
  }
  return all;
}

std::vector<std::string> tree_paths(const Collective& c, const Parameters& p) {
  const bool cut = p.chunk > 0 && p.chunk < largest_part(c.whole(), p.trees, c.cut_unit());
  return c.on_gpu() && !cut && p.trees == 1 ? std::vector<std::string>{"peer:ll"} : std::vector<std::string>{};
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
