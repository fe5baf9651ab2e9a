// The language's product of matrices.
#pragma once

#include "objects.hpp"
#include "tasuki/machine.hpp"
#include "xacc.h"

namespace tasuki::xmp {

/// c = a * b on the host, or on GPUs: as work of the queue, or with XACC_SYNC until it has ended. What it needs is kept
/// until one of the arrays has other memory. Collective over the executing nodes.
void matmul(Array& c, Array& a, Array& b, Memory where, int queue);

/// Memory on the GPU for all local elements. Collective over the array's nodes.
void allocate_on_gpu(Array& array);

}  // namespace tasuki::xmp
