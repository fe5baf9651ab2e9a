// Passes: transformations of a plan between its emission and its use. A pass may reorder or drop commands; engines may
// not. So what the verifier checks is what runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki {

/// Called with the plan as it was emitted ("emit") and after every pass, with the pass's name.
using PassObserver = std::function<void(const std::string& pass, const Plan& plan)>;

/// Runs all passes in their order. `in_background[path]` is true for those of the plan's paths whose transport carries
/// messages while the lane goes on. Throws `Error` with the plan if a pass makes a plan that complains about itself (a
/// defect of Tasuki).
void run_passes(Plan& plan, const std::vector<bool>& in_background, const PassObserver& observer = {});

/// Whether a command moves bytes into pinned host memory that messages leave from, or out of such that they arrive in.
bool stages_messages(const Plan& plan, const Command& command);

/// Pass `message order`: moves the messages of a lane into a lane of their own, if a transport carries them in the
/// background. A message and a move are then ordered, by a dependency, only if they touch the same bytes. So one slice
/// is packed while another travels and a third is unpacked. Messages keep their order among themselves, and so do
/// moves. If the lane has messages of a stream as well, the moves that pack or unpack what is carried in the background
/// get a third lane. A lane that has signals or waits as well is left as it is. False if it has changed nothing.
bool message_order(Plan& plan, const std::vector<bool>& in_background);

}  // namespace tasuki
