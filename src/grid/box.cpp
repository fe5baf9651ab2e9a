// Arithmetic on boxes of cells.
#include <algorithm>

#include "layout/checked.hpp"
#include "tasuki/grid.hpp"

namespace tasuki {

std::int64_t Box::cells() const {
  for (int d = 0; d < ndims; ++d)
    if (hi[d] <= lo[d]) return 0;
  Wide cells = ndims == 0 ? 0 : 1;
  for (int d = 0; d < ndims; ++d) cells = narrow(cells * extent(d), "Box::cells", "an extent", extent(d));
  return static_cast<std::int64_t>(cells);
}

Box intersect(const Box& a, const Box& b) {
  Box both;
  both.ndims = std::min(a.ndims, b.ndims);
  for (int d = 0; d < both.ndims; ++d) {
    both.lo[d] = std::max(a.lo[d], b.lo[d]);
    both.hi[d] = std::max(both.lo[d], std::min(a.hi[d], b.hi[d]));
  }
  return both;
}

}  // namespace tasuki
