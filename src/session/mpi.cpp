// Looks up MPI's functions under their PMPI_ or plain names, and turns their error codes into exceptions.
#include "session/mpi.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <memory>

#include "session/era.hpp"
#include "session/settings.hpp"

namespace tasuki {
namespace mpi {

const Calls& calls_by(bool profiled) {
#define TASUKI_MPI_CALL(name) &PMPI_##name,
  static const Calls hidden{TASUKI_MPI_CALLS(TASUKI_MPI_CALL)};
#undef TASUKI_MPI_CALL
#define TASUKI_MPI_CALL(name) &MPI_##name,
  static const Calls shown{TASUKI_MPI_CALLS(TASUKI_MPI_CALL)};
#undef TASUKI_MPI_CALL
  return profiled ? hidden : shown;
}

const Calls& calls() {
  static const Calls& chosen = calls_by(calls_pmpi());
  return chosen;
}

MPI_Comm duplicate(MPI_Comm comm, double seconds, const std::string& doing) {
  struct Copy {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // After a timeout MPI may still write into it, so then it is never freed.
  auto copy = std::make_unique<Copy>();
  Comm_idup(comm, &copy->comm, &copy->request);
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done == 0; sched_yield()) {
    // The clock is read before the test. A process that was stopped for long between the two does not time out wrongly.
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Test(&copy->request, &done, MPI_STATUS_IGNORE);
    if (done != 0 || waited <= seconds) continue;
    (void)copy.release();
    int rank = 0;
    Comm_rank(comm, &rank);
    throw Error(
        fmt::format("Context: rank {}: {}: the other ranks have not all come within {:g} s; all ranks of the "
                    "communicator must make the context, and TASUKI_DEADLINE allows more",
                    rank, doing, seconds));
  }
  Comm_set_errhandler(copy->comm, MPI_ERRORS_RETURN);
  return copy->comm;
}

MPI_Comm part(MPI_Comm comm, std::span<const int> ranks, int tag) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  Comm_group(comm, &all);
  Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  Comm_create_group(comm, some, tag, &made);
  Group_free(&some);
  Group_free(&all);
  Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

}  // namespace mpi

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  if (mpi::calls().Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error code {}", code);
  return text;
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  int rank = 0;
  mpi::calls().Comm_rank(MPI_COMM_WORLD, &rank);
  throw Error(fmt::format("rank {}: {} failed: {}", rank, call, mpi_error_text(code)));
}

bool mpi_running() {
  if (Era::forked()) return false;  // a forked child must not call its parent's MPI
  int started = 0;
  int ended = 0;
  mpi::calls().Initialized(&started);
  mpi::calls().Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace tasuki
