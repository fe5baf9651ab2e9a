// Uses a function of the installed library and MPI, through the installed headers.
#include <mpi.h>

#include <cstdio>

#include "tasuki/layout.hpp"
#include "tasuki/version.h"

#if TASUKI_VERSION < 100
#error "the header is older than the package"
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto column = tasuki::Layout::vector(4, 1, 8, tasuki::Layout::of<double>());
  const bool same = tasuki_version() == TASUKI_VERSION;
  const bool right = same && column.size() == 4 * sizeof(double) && column.runs() == 4;
  std::printf("one of %d ranks: %s\n", ranks, column.describe().c_str());
  MPI_Finalize();
  return right ? 0 : 1;
}
