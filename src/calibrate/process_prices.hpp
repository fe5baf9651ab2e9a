// Prices that a part of the ranks has measured. No file keeps them, because such ranks may have no partner as far as
// others have. The process does, for later parts of the same ranks: measuring takes seconds.
#pragma once

#include "machine/profile.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Rank 0 keeps the prices that the part has, until the process ends. Local.
void remember_prices(const Runtime& part);
/// What rank 0 has kept of a part of these ranks, in this order and with these islands; empty if nothing. Collective.
Profile remembered_prices(Runtime& part);

}  // namespace tasuki
