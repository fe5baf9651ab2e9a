// Passes: what happens to a plan between its emission and its use. A pass may reorder or drop commands; engines may
// not. So the verifier sees what runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki {

/// Called with the plan as it was emitted ("emit") and after every pass, with the pass's name.
using PassObserver = std::function<void(const std::string& pass, const Plan& plan)>;

/// Runs all passes in their order. `in_background[path]` tells which of the plan's paths carry messages while their
/// lane goes on. Throws `Error` if a pass leaves a plan that complains about itself (a defect of Tasuki's own); the
/// text holds the plan.
void run_passes(Plan& plan, const std::vector<bool>& in_background, const PassObserver& observer = {});

/// Pass `message order`: gives the messages of a lane a lane of their own where something else than the lane carries
/// them (`in_background`). A message and a move are then ordered, by a dependency, only if they touch the same bytes:
/// one slice is packed while another travels and a third is unpacked. Messages keep their order among themselves, and
/// so do moves. Lanes that have signals or waits as well stay as they are.
void message_order(Plan& plan, const std::vector<bool>& in_background);

}  // namespace tasuki
