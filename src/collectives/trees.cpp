// Trees: see trees.hpp.
#include "collectives/trees.hpp"

#include <algorithm>
#include <map>

namespace tasuki {

namespace {

// Adds a heap of that arity over `ranks` to the tree; ranks[0] is its top.
void hang(Tree& tree, const std::vector<int>& ranks, int arity) {
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const int parent = ranks[(i - 1) / static_cast<std::size_t>(arity)];
    tree.parent[static_cast<std::size_t>(ranks[i])] = parent;
    tree.children[static_cast<std::size_t>(parent)].push_back(ranks[i]);
  }
}

// Rotates the ranks behind the first one, so that different trees have different inner nodes.
void turn(std::vector<int>& ranks, int which, int of) {
  if (ranks.size() < 3) return;
  const auto rest = static_cast<std::ptrdiff_t>(ranks.size() - 1);
  std::rotate(ranks.begin() + 1, ranks.begin() + 1 + rest * which / of, ranks.end());
}

}  // namespace

int Tree::depth() const {
  std::vector<int> level;  // ranks at one depth
  for (std::size_t r = 0; r < parent.size(); ++r) {
    if (parent[r] < 0) level.push_back(static_cast<int>(r));
  }
  int depth = 0;
  for (;;) {
    std::vector<int> below;
    for (const int rank : level) {
      const auto& next = children[static_cast<std::size_t>(rank)];
      below.insert(below.end(), next.begin(), next.end());
    }
    if (below.empty()) return depth;
    ++depth;
    level = std::move(below);
  }
}

Tree make_tree(std::span<const int> island, int root, int arity, int which, int of) {
  Tree tree;
  tree.parent.assign(island.size(), -1);
  tree.children.resize(island.size());
  std::map<int, std::vector<int>> members;
  for (std::size_t r = 0; r < island.size(); ++r) members[island[r]].push_back(static_cast<int>(r));
  std::vector<int> heads{root};
  for (auto& [number, ranks] : members) {
    if (number == island[static_cast<std::size_t>(root)]) {
      std::rotate(ranks.begin(), std::find(ranks.begin(), ranks.end(), root), ranks.end());
      turn(ranks, which, of);
      continue;
    }
    // A different rank enters the island in each tree.
    std::rotate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size()) * which / of, ranks.end());
    heads.push_back(ranks.front());
  }
  turn(heads, which, of);
  // A rank serves heads of other islands first, because these ways are the longest.
  hang(tree, heads, arity);
  for (const auto& [number, ranks] : members) hang(tree, ranks, arity);
  return tree;
}

}  // namespace tasuki
