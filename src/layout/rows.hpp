// Strided copies in the form of a copy engine: rows of one pitch on each side.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// Whether one call can take all rows of the last dimension: they ascend, do not overlap, and their pitch fits into 31
/// bits.
inline bool in_rows(const StridedCopy& copy) {
  if (copy.ndims == 0) return false;
  const auto fits = [&](std::int64_t stride) { return stride >= copy.block && stride <= 0x7fffffff; };
  const auto& rows = copy.dims[static_cast<std::size_t>(copy.ndims - 1)];
  return fits(rows.src_stride) && fits(rows.dst_stride);
}

/// Number of calls of the copy engine.
inline std::int64_t copy_engine_calls(const StridedCopy& copy) {
  std::int64_t count = 1;
  for (int d = 0; d < copy.ndims - (in_rows(copy) ? 1 : 0); ++d) count *= copy.dims[static_cast<std::size_t>(d)].count;
  return count;
}

}  // namespace tasuki
