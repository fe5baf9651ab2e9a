// One rank is killed while the program ends: as it waits for the others to leave the context (`leaving`), or in
// MPI_Finalize (`finalize`). No survivor may end with status 0, and neither may the launcher.
//
//   killed_at_end VICTIM WHEN
#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tasuki/tasuki.hpp"

namespace {
bool dies_in_finalize = false;
}  // namespace

extern "C" int MPI_Finalize() {
  if (dies_in_finalize) kill(getpid(), SIGKILL);
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  std::thread killer;
  {
    const tasuki::Context ctx(argc, argv);
    const bool victim = ctx.rank() == std::atoi(argv[1]);
    const bool leaving = std::string_view(argv[2]) == "leaving";
    dies_in_finalize = victim && !leaving;
    const tasuki::Grid grid(ctx, {8 * ctx.size(), 9}, {.split = {ctx.size(), 1}});
    const tasuki::Field<double> u(grid, {.name = "u"});
    tasuki::Halo halo{tasuki::HaloField(u)};
    halo.start();
    halo.wait();
    if (leaving && victim) {
      killer = std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        kill(getpid(), SIGKILL);
      });
    }
    if (leaving && ctx.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    std::fflush(stdout);
  }
  if (killer.joinable()) killer.join();
  fmt::print("at the end\n");
  return EXIT_SUCCESS;
}
