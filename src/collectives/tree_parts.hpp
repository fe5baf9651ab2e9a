// Parts of a message, each with a tree of its own, along which it is pipelined in chunks: what broadcast and reduce
// over trees have in common.
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

/// Parts of about equal size that begin on cache lines; none is empty.
std::vector<TreePart> tree_parts(const Collective& collective, const Parameters& parameters);

/// What is left open by `wanted`, filled in with all that is worth trying; chunks no longer than a part.
std::vector<Parameters> tree_settings(const Collective& collective, const Parameters& wanted);

/// The first chunk goes along a whole tree, then one chunk after the other passes the busiest rank.
double tree_seconds(const Collective& collective, const Parameters& parameters, const Price& price);

}  // namespace tasuki
