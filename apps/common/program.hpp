// The main function that the apps share: one Tasuki context, one line for an error, an exit code that is never a hang.
#pragma once

#include <functional>

#include "common/options.hpp"
#include "tasuki/context.hpp"

namespace apps {

/// What an app does on every rank; returns the exit code.
using Body = std::function<int(const tasuki::Context&, Options)>;

/// Reads the command line, starts MPI, or with `--threads N` as many threads as ranks, calls `body` and returns its
/// exit code. If a rank fails, the job prints one line and ends.
int run_program(int argc, char** argv, const AppInfo& info, const Body& body);

}  // namespace apps
