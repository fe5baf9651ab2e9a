// The main function that the apps share: one Tasuki context, one line for an error, an exit code that is never a hang.
#pragma once

#include <functional>

#include "tasuki/context.hpp"

namespace apps {

/// Thrown to leave the program with an exit code and without a message (after `--help`, or a bad option).
struct Exit {
  int code = 0;
};

/// Starts MPI, calls `body` and returns its exit code. If a rank fails, the job prints one line and ends.
int run_program(int argc, char** argv, const std::function<int(const tasuki::Context&)>& body);

}  // namespace apps
