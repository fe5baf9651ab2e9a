// Predict, for choosing among plans: as tasuki/predict.hpp, only the total, and quickly.
#pragma once

#include <span>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// `Prediction::seconds` of plans that were just made. Walks one epoch before the one that counts, and 12 rounds of
/// chunk loops.
double predicted_seconds(std::span<const Plan> plans, const Machine& machine);

}  // namespace tasuki
