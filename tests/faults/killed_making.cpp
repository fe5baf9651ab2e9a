// A rank is killed while a context or a subset is made. The others must leave that with an error that names the dead
// rank. Run with the launcher's recovery on (killed_making.py).
//
//   killed_making VICTIM WHEN
//
// WHEN: `context`, `subset`: the victim dies instead of making it; `inside`: in MPI's call that makes the subset's
// communicator; `first`: in the middle of the process's first context; `closed`: once a subset
// is made. The others release it, which waits for nobody, and then meet in the context.
#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tasuki/tasuki.hpp"

namespace {

bool dies_inside = false;    // a subset's communicator
bool dies_in_first = false;  // once the ranks have told each other who they are

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace

// Tasuki calls these names with TASUKI_PMPI=0.
extern "C" int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  if (dies_inside) die();
  return PMPI_Comm_create_group(comm, group, tag, made);
}
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  if (dies_in_first) die();
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool victim = rank == std::atoi(argv[1]);
  const std::string_view when = argv[2];
  auto begin = std::chrono::steady_clock::now();
  std::string error = "nothing was wrong";
  try {
    dies_in_first = victim && when == "first";
    const tasuki::Context ctx(MPI_COMM_WORLD);
    ctx.barrier();
    begin = std::chrono::steady_clock::now();
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    if (when == "closed") {
      {
        const tasuki::Context part = ctx.subset(all);
        part.barrier();
        begin = std::chrono::steady_clock::now();
        if (victim) die();
      }
      ctx.barrier();
    }
    if (victim && when != "inside") die();
    dies_inside = victim;
    const tasuki::Context made = when == "context" ? tasuki::Context(MPI_COMM_WORLD) : ctx.subset(all);
  } catch (const tasuki::Error& caught) {
    error = caught.what();
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  fmt::print("survivor {} after {:.2f} s: {}\n", rank, waited.count(), error);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // so that the other one is not told of this rank's end
  _exit(0);
}
