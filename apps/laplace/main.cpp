// laplace: Jacobi's method for Laplace's equation in two dimensions, double precision, on Tasuki. What to copy: a field
// with two copies and its halo (solver.cpp), an iteration with or without overlap on CPUs (cpu_solver.cpp) and on GPUs
// (common/gpu.cu).
//   mpirun -n 4 laplace --size 4096 --split 2x2 --verify
#include <fmt/format.h>

#include <memory>

#include "common/gather.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/report.hpp"
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

std::unique_ptr<laplace::Solver> make_solver(const tasuki::Context& context, const apps::Options& options,
                                             [[maybe_unused]] bool on_gpus) {
#ifdef TASUKI_HAVE_CUDA
  if (on_gpus) return laplace::make_gpu_solver(context, options);
#endif
  return laplace::make_cpu_solver(context, options);
}

int laplace_main(const tasuki::Context& context, apps::Options options) {
  const bool on_gpus = apps::settle_device(context, options);
  {
    const tasuki::Grid grid(context, options.extents, options.grid());
    apps::require_memory(context, memory_needed(grid, on_gpus, options.verify),
                         fmt::format("laplace {}{}", options.size, options.verify ? " with --verify" : ""));
  }
  const auto solver = make_solver(context, options, on_gpus);
  const auto from_start = [&solver](int iterations) {
    solver->initialise();
    return solver->run(iterations);
  };
  apps::Result result;
  apps::describe_gpus(context, on_gpus, result);
  result.iterations = apps::choose_iterations(context, options, from_start);
  apps::reduce_times(context, from_start(result.iterations), result);
  result.norm_name = "change";
  result.norm = solver->change();
  result.flops_per_iteration = laplace::kFlopsPerCell;
  for (const auto extent : options.extents) result.flops_per_iteration *= static_cast<double>(extent - 2);
  if (options.verify) result.verified = solver->equals_serial(result.iterations);
  if (const auto split = solver->split(result.iterations)) apps::reduce_split(context, *split, result);
  return apps::report(solver->grid(), kInfo.name, options, solver->halo(), result);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program(argc, argv, kInfo, laplace_main);
}
