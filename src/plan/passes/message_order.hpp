// In which order a lane's commands must be where somebody else carries its messages: a message and another command of
// its lane are kept apart only if they touch the same bytes, so that the lane goes on while messages travel.
#pragma once

#include <cstdint>
#include <vector>

#include "tasuki/plan.hpp"

namespace tasuki {

/// Per command of the plan the earlier ones of its lane that must have ended before it, as far as one of the two is
/// marked in `carried` (per command); the others run in the order of the lane. Signals and waits of the lane
/// keep their places among the messages.
std::vector<std::vector<std::int32_t>> message_order(const Plan& plan, const std::vector<bool>& carried);

}  // namespace tasuki
