// Torus trees: spanning trees over the hosts of a torus whose edges are links, each link in one tree at most. Pure
// index arithmetic and search; the trees of a root are those of another one, shifted.
#pragma once

#include <vector>

#include "collectives/trees.hpp"

namespace tasuki {

/// Links that leave a point: two a dimension, one where the dimension has two points, none where it has one. So many
/// trees that share no link there are, and not more.
int torus_links(const std::vector<int>& extents);

/// `trees` trees over the points of a torus (the last dimension fastest), from `root` down. Every edge is a link from a
/// point to a neighbour, and no two edges, of one tree or of different ones, are the same link in the same direction.
/// Points have at most `arity` children where that is possible, and where it is possible `trees` children over all
/// trees, so that nobody sends more often than the root. `trees` is 1 to `torus_links(extents)`.
std::vector<Tree> torus_trees(const std::vector<int>& extents, int root, int trees, int arity);

}  // namespace tasuki
