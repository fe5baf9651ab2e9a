// laplace: Jacobi's method for Laplace's equation in two dimensions, double precision, on Tasuki. What to copy: a field
// with two copies and its halo (solver.cpp), an iteration with or without overlap on CPUs (common/jacobi.cpp) and on
// GPUs (common/gpu.cu).
//   mpirun -n 4 laplace --size 4096 --split 2x2 --verify
#include <fmt/format.h>

#include "common/jacobi.hpp"
#include "common/program.hpp"
#include "laplace/solver.hpp"

namespace {

const apps::AppInfo kInfo{"laplace", "Jacobi's method for Laplace's equation in two dimensions", 2, "2048", {}};

// On the hosts: the two copies of all ranks, unless those are on GPUs; for a comparison also this rank's values on
// their way to rank 0, and there the serial run's two and the gathered values.
std::int64_t memory_needed(const tasuki::Grid& grid, bool on_gpus, bool verify) {
  const tasuki::Box own = grid.owned();
  std::int64_t cells = own.empty() || on_gpus ? 0 : 2 * (own.extent(0) + 2) * (own.extent(1) + 2);
  if (verify) cells += (on_gpus ? 2 : 1) * own.cells();
  if (verify && grid.context().is_root()) cells += 4 * grid.extent(0) * grid.extent(1);
  return cells * static_cast<std::int64_t>(sizeof(double));
}

const apps::Equation kEquation{
    .norm_name = "change",
    .flops_per_cell = laplace::kFlopsPerCell,
    .bytes_per_cell = laplace::kBytesPerCell,
    .memory_needed = memory_needed,
    .on_cpus = laplace::make_cpu_solver,
    .resident_on_cpus = laplace::make_cpu_resident,
#ifdef TASUKI_HAVE_CUDA
    .on_gpus = laplace::make_gpu_solver,
    .resident_on_gpus = laplace::make_gpu_resident,
#endif
};

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program(argc, argv, kInfo, [](const tasuki::Context& context, const apps::Options& options) {
    return apps::solve(context, options, kInfo, kEquation);
  });
}
