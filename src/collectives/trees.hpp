// Trees: which rank forwards a part of a broadcast to which ranks. Pure index arithmetic over ranks and islands.
#pragma once

#include <span>
#include <vector>

namespace tasuki {

struct Tree {
  std::vector<int> parent;                 ///< per rank; -1 for the root
  std::vector<std::vector<int>> children;  ///< per rank, in the order in which they are served
  int depth() const;                       ///< edges from the root to the farthest rank
  friend bool operator==(const Tree&, const Tree&) = default;
};

/// Tree number `which` of `of` over all ranks (island[r] is the island of rank r): an `arity`-ary tree over one rank of
/// each island, then one inside each island, so that every island is entered once. The inner nodes differ between the
/// trees, so the work of forwarding several parts is spread over the ranks.
Tree make_tree(std::span<const int> island, int root, int arity, int which, int of);

}  // namespace tasuki
