// What the algorithms of all-to-all have in common: where blocks lie, and a round of sending them.
#pragma once

#include "collectives/algorithm.hpp"

namespace tasuki {

/// Where every rank's blocks leave from: `in`, or in place a copy of them, which is made first.
Place staged_blocks(const Collective& collective, Steps& steps);
/// Every rank sends to the one `distance` above it.
void send_blocks(const Collective& collective, Steps& steps, Place from, int distance);
/// Every rank's block for itself.
void keep_blocks(const Collective& collective, Steps& steps);

/// The rank that sends most, message by message.
double alltoall_seconds(const Collective& collective, const Parameters& parameters, const Price& price);

}  // namespace tasuki
