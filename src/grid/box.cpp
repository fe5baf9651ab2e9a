// Arithmetic on boxes of cells.
#include <fmt/format.h>

#include <algorithm>

#include "layout/checked.hpp"
#include "tasuki/box.hpp"
#include "tasuki/error.hpp"

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

Width::Width(const std::vector<std::int64_t>& below, const std::vector<std::int64_t>& above) {
  if (below.size() != above.size() || below.size() > kMaxDims)
    throw Error(
        fmt::format("Width: argument 'below' has {} entries and 'above' {}; both need the same number, at most "
                    "{}",
                    below.size(), above.size(), kMaxDims));
  std::copy(below.begin(), below.end(), lo.begin());
  std::copy(above.begin(), above.end(), hi.begin());
}

}  // namespace tasuki
