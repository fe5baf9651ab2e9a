// Compare: the measured time of each command of a plan beside its predicted time.
#pragma once

#include <string>
#include <vector>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

/// Medians over some epochs, in seconds.
struct Measured {
  int epochs = 0;
  double epoch = 0;              ///< from the start to the end of the last command
  std::vector<double> commands;  ///< per command; in a loop: of all rounds together
};

/// A table for people. A rank knows only its own plan, so it predicts each command by itself: the time of the bytes
/// that it moves, and the latency of what it announces. Waiting depends on the peers and is not predicted.
std::string compared(const Plan& plan, const Machine& machine, const Measured& measured);

}  // namespace tasuki
