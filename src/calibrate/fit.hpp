// Fit: the constants of a path from what was measured.
#pragma once

#include "calibrate/times.hpp"
#include "machine/profile.hpp"

namespace tasuki {

/// `alone`: one rank has measured by itself, in one direction only.
CostSection constants_of(const Times& times, bool on_gpu, bool alone);

}  // namespace tasuki
