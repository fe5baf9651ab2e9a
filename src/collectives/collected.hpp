// Adding up what others have sent: whole parts arrive as plain copies, by whatever carries them best, and are added up
// by their receiver behind. What `collect` of reduce and of reduce-scatter have in common.
#pragma once

#include <functional>

#include "collectives/algorithm.hpp"
#include "collectives/cuts.hpp"

namespace tasuki {

/// Adds up at `dst` of rank `to` what every rank r has at `from(r)`, `bytes` of it, cut by `chunk`. The rank's own
/// value may lie at `dst` already. `slots` is scratch for (n - 1) * `slot` bytes, of which the others' values that do
/// not arrive at `dst` take one each; `slot` is at least `bytes`.
void collect(const Collective& c, Steps& steps, int to, const std::function<Place(int)>& from, Place dst,
             std::int64_t bytes, int slots, std::int64_t slot, std::int64_t chunk);

/// Infinite in host memory, where a reduction combines what it unpacks and a second pass does not pay: there these
/// algorithms run only if they are asked for.
double collect_seconds(const Collective& collective, const Parameters& parameters, const Price& price,
                       double bytes_of_block);

}  // namespace tasuki
