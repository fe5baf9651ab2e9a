// Compare: what the commands of a plan took, beside what they were predicted to take.
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

/// A table for people. One rank knows only its own plan, so what it predicts is each command by itself: the price of
/// the bytes that it moves and of what it announces, nothing for waiting, which is up to the peers.
std::string compared(const Plan& plan, const Machine& machine, const Measured& measured);

}  // namespace tasuki
