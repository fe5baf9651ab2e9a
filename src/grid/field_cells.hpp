// Where the cells of a field lie in its memory: plain data, for those who ask whose cells a plan moves.
#pragma once

#include <cstdint>
#include <vector>

#include "tasuki/box.hpp"

namespace tasuki {

/// A field on one rank. Its memory begins with the cell at `owned.lo` less the shadow, the last dimension fastest.
struct FieldCells {
  std::int64_t element_bytes = 0;
  std::vector<std::int64_t> extents;  ///< in memory, in cells
  Box owned;                          ///< global indices
  Width shadow;
  Width width;  ///< how much of the shadow an operation fills
};

}  // namespace tasuki
