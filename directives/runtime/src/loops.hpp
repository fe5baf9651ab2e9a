// Which iterations of a loop over a template a node executes: index arithmetic, no ranks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cut.hpp"
#include "tasuki/layout.hpp"

namespace tasuki::xmp {

/// The next indices of `loop` that the part owns, from `after` on: adjacent in the cut, a step of the loop apart. With
/// a cut into single indices dealt out in turn they are all that are left. An empty range: there are no more.
Range next_piece(const Cut& cut, int part, const Range& loop, std::int64_t after);

/// Iterations of a nest: for each dimension a range.
using Nest = std::vector<Range>;

/// How the iterations of a node differ from the indices that it owns.
enum class Edge : std::uint8_t {
  expand,  ///< so many more at either side; a negative number: fewer
  margin,  ///< only those by which `expand` differs
};

/// The iterations of the part `parts[d]` of contiguous cuts in every dimension, as disjoint nests. The loop's own
/// ranges are never left. Throws `Error` for a cut that is not contiguous where `layers` are not 0.
std::vector<Nest> nests_of(const std::vector<Cut>& cuts, const std::vector<int>& parts, const Nest& loop, Edge edge,
                           const std::vector<Layers>& layers);

}  // namespace tasuki::xmp
