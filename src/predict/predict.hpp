// Predict, for choosing among plans: computes only the total of tasuki/predict.hpp, and quickly.
#pragma once

#include <span>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// `Prediction::seconds` of plans that were just made. Walks one epoch before the reported one, and of chunk loops 12
/// rounds, or twice as many as there are ranks.
double predicted_seconds(std::span<const Plan> plans, const Machine& machine);

}  // namespace tasuki
