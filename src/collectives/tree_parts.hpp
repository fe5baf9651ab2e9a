// Parts of a message, each with a tree of its own, along which it is pipelined in chunks: what broadcasts and
// reductions over trees have in common, whatever the trees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/trees.hpp"

namespace tasuki {

struct TreePart {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  Tree tree;
  std::string name;
};

/// A part for each tree, of about equal size, which begin on cache lines; empty ones are left out.
std::vector<TreePart> parts_along(const Collective& collective, std::vector<Tree> trees);
/// The same along `make_tree`'s.
std::vector<TreePart> tree_parts(const Collective& collective, const Parameters& parameters);

/// Lists a broadcast of the parts from their roots down, or their reduction from the leaves up to the root.
void spread_parts(const Collective& collective, const std::vector<TreePart>& parts, std::int64_t chunk, Steps& steps);
void gather_parts(const Collective& collective, const std::vector<TreePart>& parts, std::int64_t chunk, Steps& steps);

/// Chunks that may pay for a part of so many bytes, itself included; the one that is wanted, if one is.
std::vector<std::int64_t> tree_chunks(const Collective& collective, std::int64_t part, std::int64_t wanted);

/// What is left open by `wanted`, filled in with all that is worth trying; chunks no longer than a part.
std::vector<Parameters> tree_settings(const Collective& collective, const Parameters& wanted);

/// `Algorithm::paths` of trees. Between GPUs a vector that is not cut pays in LL lines, along one tree: nobody
/// waits until stores are visible, and who hands lines on, or adds to them, sends each one when it has come. Whoever
/// looks at each message by itself does not see that.
std::vector<std::string> tree_paths(const Collective& collective, const Parameters& parameters);

/// The first chunk goes along a whole tree, then one chunk after the other passes the busiest rank.
double tree_seconds(const Collective& collective, const Parameters& parameters, const Price& price);

}  // namespace tasuki
