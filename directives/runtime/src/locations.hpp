// Whose value is the greatest or the least.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tasuki/dtype.hpp"

namespace tasuki::xmp {

/// The node whose value at `element` is best: `all` holds `nodes` blocks of `stride` bytes, each of which begins with
/// values of `type`, an integer or floating-point type of C. Of equal ones the first or the last; a NaN is the best.
int best_of(const std::byte* all, int nodes, std::int64_t stride, std::int64_t element, DType type, bool greatest,
            bool last);

}  // namespace tasuki::xmp
