// The main function that the apps share.
#include "common/program.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

namespace apps {
namespace {

// Most errors come up on all ranks at once. The lowest of them prints and ends the job; the others give it the time
// to do so, and speak up themselves only if they are still there afterwards.
[[noreturn]] void fail(const tasuki::Context& context, const std::string& what) {
  usleep(static_cast<useconds_t>(std::min(context.rank(), 8)) * 150'000);
  fmt::print(stderr, "rank {}: {}\n", context.rank(), what);
  std::fflush(nullptr);
  // With a dead rank in the job MPI_Abort itself may wait for ever.
  const bool rank_died = what.find("has died") != std::string::npos || what.find("gave up") != std::string::npos;
  if (!rank_died) MPI_Abort(context.comm(), 1);
  _exit(1);
}

}  // namespace

int run_program(int argc, char** argv, const std::function<int(const tasuki::Context&)>& body) {
  try {
    const tasuki::Context context(argc, argv);
    // Caught while the context lives: its destructor would end MPI, for which the other ranks are not ready.
    try {
      return body(context);
    } catch (const Exit& exit) {
      return exit.code;
    } catch (const std::exception& error) {
      fail(context, error.what());
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    std::fflush(nullptr);
    int started = 0;
    MPI_Initialized(&started);
    if (started) MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
}

}  // namespace apps
