// Which of two copy kernels is the faster one on this processor, tried out.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// Whether `other` runs a copy in clearly less time than `usual`. `copy` must have offsets and strides of at least 0;
/// it is run on memory of its own some dozens of times, the least time counts.
bool clearly_faster(CopyFunction other, CopyFunction usual, const StridedCopy& copy);

}  // namespace tasuki
