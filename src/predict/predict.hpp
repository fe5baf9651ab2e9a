// Predict, for choosing among plans: computes only the total of tasuki/predict.hpp, and quickly.
#pragma once

#include <span>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/predict.hpp"

namespace tasuki {

/// `Prediction::seconds` of plans that were just made. Walks one epoch before the reported one, and of chunk loops 12
/// rounds, or twice as many as there are ranks.
double predicted_seconds(std::span<const Plan> plans, const Machine& machine);

/// The same, and for how long cores are busy meanwhile.
struct PredictedWork {
  double seconds = 0;
  double cores = 0;  ///< of all ranks together
};
PredictedWork predicted_work(std::span<const Plan> plans, const Machine& machine);

/// The same where every rank starts, computes for `computation` seconds and waits, and only its own core, or messages
/// under way, move bytes: seconds of the slowest rank with the computation.
double predicted_beside(std::span<const Plan> plans, const Machine& machine, double computation);

/// `predict` of plans of all ranks that were just made, and so are known to be sound.
Prediction predict_made(std::span<const Plan> plans, const Machine& machine);

/// Throws `Error` for plans that cannot be predicted: not of all ranks, not sound, or more than the machine has.
void check_plans(std::span<const Plan> plans, const Machine& machine);

}  // namespace tasuki
