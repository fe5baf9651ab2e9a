// What a C program has forgotten to free when it ends, where that keeps MPI running: launchers then report a program
// that exits improperly, and do not say why.
#include "api/at_exit.hpp"

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/handles.hpp"
#include "layout/counted.hpp"

namespace tasuki::api {
namespace {

std::atomic<pid_t> starter{0};  // the process that has started MPI through tasuki_init

void tell() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0 || starter != getpid()) return;
  const std::string left = living_handles();
  if (left.empty()) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fmt::print(
      stderr,
      "tasuki: rank {}: the program ends with handles that it has not freed ({}); they keep the context alive, so "
      "MPI was not ended. Free each of them, and the context last\n",
      rank, left);
}

}  // namespace

void watch_end() {
  if (starter.exchange(getpid()) == 0) std::atexit(tell);
}

}  // namespace tasuki::api
