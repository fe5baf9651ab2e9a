// Collectives on memory that is not contiguous: the ranks tell each other their layouts, which must fit, and from them
// the shape of the collective is made.
#pragma once

#include <string>

#include "operations/collective.hpp"

namespace tasuki {

/// What is wrong with the layouts of this rank by themselves; empty: nothing.
std::string complaint_about_layouts(const CollectiveCall& call, int rank, int ranks);

/// Fills counts and layouts of `call.shape`, whose `in_place` says whether this rank works in place. Collective.
/// Layouts that do not fit, and an attempt that has failed on a rank, throw the same `Error` on every rank.
void settle_layouts(Runtime& runtime, Attempt& attempt, CollectiveCall& call);

}  // namespace tasuki
