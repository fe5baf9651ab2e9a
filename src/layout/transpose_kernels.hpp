// Copies that turn rows into columns: numbers that follow each other in the source along one dimension and in the
// destination along another.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// The function for a copy that transposes numbers of 4, 8 or 16 bytes, tile by tile; null for other copies.
CopyFunction select_transpose(const StridedCopy& copy);

}  // namespace tasuki
