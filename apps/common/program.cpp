// The main function that the apps share.
#include "common/program.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "tasuki/threads.hpp"

namespace apps {
namespace {

// Most errors come up on all ranks at once. The lowest of them prints and ends the job; the others give it the time
// to do so, and speak up themselves only if they are still there afterwards.
[[noreturn]] void fail(const tasuki::Context& context, const std::string& what) {
  usleep(static_cast<useconds_t>(std::min(context.rank(), 8)) * 150'000);
  const std::string who = fmt::format("rank {}: ", context.rank());  // which most texts say themselves
  fmt::print(stderr, "{}{}\n", what.starts_with(who) ? "" : who, what);
  std::fflush(nullptr);
  // With a dead rank in the job MPI_Abort itself may wait for ever.
  const bool rank_died = what.find("has died") != std::string::npos || what.find("gave up") != std::string::npos;
  if (!rank_died) MPI_Abort(context.comm(), 1);
  _exit(1);
}

int run_on_processes(int argc, char** argv, const CommandLine& line, const Body& body) {
  const tasuki::Context context(argc, argv);
  if (line.code) {
    if (context.is_root()) fmt::print(*line.code == 0 ? stdout : stderr, "{}", line.said);
    return *line.code;
  }
  // Caught while the context lives: its destructor would end MPI, for which the other ranks are not ready.
  try {
    return body(context, line.options);
  } catch (const std::exception& error) {
    fail(context, error.what());
  }
}

int run_on_threads(const Options& options, const Body& body) {
  int code = 0;
  tasuki::run_threads(options.threads, [&](const tasuki::Context& context) {
    const int own = body(context, options);
    if (context.is_root()) code = own;
  });
  return code;
}

}  // namespace

int run_program(int argc, char** argv, const AppInfo& info, const Body& body) {
  try {
    const CommandLine line = parse_options(argc, argv, info);
    return line.options.threads > 0 && !line.code ? run_on_threads(line.options, body)
                                                  : run_on_processes(argc, argv, line, body);
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
