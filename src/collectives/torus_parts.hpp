// Parts of a message that travel along trees over a torus: what broadcast and reduce `torus` have in common. The trees
// join hosts; in a host with several ranks another one is the first in each tree and serves the others.
#pragma once

#include "collectives/tree_parts.hpp"

namespace tasuki {

/// An algorithm `torus` without what it lists: the settings are trees, arity and chunk as for `trees`.
Algorithm over_torus(CollectiveKind kind, int complexity, decltype(Algorithm::list) list);

/// A tree's part is cut into strands, which run down the same tree and begin with different children.
std::vector<TreePart> torus_parts(const Collective& collective, const Parameters& parameters);

}  // namespace tasuki
