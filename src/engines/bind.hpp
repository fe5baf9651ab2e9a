// Bind: lowers a draft to a program of this process: scratch and counters are placed, addresses exchanged, copy
// functions and channels picked.
#pragma once

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"
#include "planner/planner.hpp"

namespace tasuki {

/// Collective over the runtime; if it fails on one rank it throws on all.
Program bind(const Planning& planning, Draft draft, int operation, bool threaded);

}  // namespace tasuki
