// Trees: who hands the parts of a broadcast to whom. Pure index arithmetic over ranks and islands.
#pragma once

#include <span>
#include <vector>

namespace tasuki {

struct Tree {
  std::vector<int> parent;                 ///< per rank; -1 for the root
  std::vector<std::vector<int>> children;  ///< per rank, in the order they are served
  int depth() const;                       ///< edges on the longest way down
};

/// Tree number `which` of `of` over all ranks (island[r] = island of rank r): an `arity`-ary tree over one rank of each
/// island, then one inside each island, so that every island is entered once. The trees differ in which ranks are inner
/// nodes, so that forwarding several parts is spread over the ranks.
Tree make_tree(std::span<const int> island, int root, int arity, int which, int of);

}  // namespace tasuki
