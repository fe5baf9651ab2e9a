// laplace: Jacobi's method for Laplace's equation in two dimensions, double precision, on Tasuki. All in one file, for
// copying: a field with two copies, its halo as one operation, and an iteration with or without overlap.
//   mpirun -n 4 laplace --size 4096 --split 2x2 --verify
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "common/gather.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/report.hpp"
#include "laplace/kernel.hpp"
#include "laplace/serial.hpp"
#include "tasuki/tasuki.hpp"

namespace {

const apps::AppInfo kInfo{"laplace", "Jacobi's method for Laplace's equation in two dimensions", 2, "2048", {}};

class Solver {
 public:
  Solver(const tasuki::Context& context, const apps::Options& given)
      : grid(context, given.extents, given.grid()),
        u(grid, {.name = "u", .shadow = 1, .copies = 2}),
        // The stencil has no corners, and every iteration swaps the copies once.
        halo(u, {{.path = given.path, .engine = given.engine},
                 /*corners=*/false,
                 /*reverse=*/false,
                 /*alternating=*/true}),
        options(given) {}

  void initialise() {
    u.swap();  // once between two exchanges, as promised by `alternating`
    double* const now = u.data();
    double* const next = u.next();  // its fixed cells are never computed
    u.for_each([&](const tasuki::Index& at, double& cell) {
      next[&cell - now] = cell = laplace::initial_value(at[0], at[1], grid.extent(0));
    });
    halo.start();
    halo.wait();
  }

  apps::Timing run(int iterations) {
    apps::Timing timing;
    apps::Progress progress(grid.context(), options, iterations);
    grid.context().barrier();
    const double begin = MPI_Wtime();
    for (int n = 0; n < iterations; ++n) {
      u.swap();  // from here on `next()` has the old values and `data()` is to be computed
      local_change = 0;
      const auto compute = [&](const tasuki::Box& box) {
        const double since = MPI_Wtime();
        local_change = std::max(local_change, laplace::sweep(u.next(), u.data(), region(box)));
        timing.compute += MPI_Wtime() - since;
      };
      if (options.overlap) {
        tasuki::overlap(halo, u, 1, compute);
      } else {
        compute(u.local_owned());
        halo.start();
        halo.wait();
      }
      progress.done(n + 1);
    }
    timing.total = MPI_Wtime() - begin;
    return timing;
  }

  // Largest change of a cell in the last step. Collective.
  double change() const {
    double change = local_change;
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, grid.context().comm());
    return change;
  }

  // Bitwise, after `iterations` from the start. Collective.
  bool equals_serial(int iterations) const {
    const std::vector<double> parallel = apps::gather_on_root(u);
    int equal = 0;
    if (grid.context().is_root()) {
      const std::vector<double> serial = laplace::solve_serially(grid.extent(0), grid.extent(1), iterations);
      equal = serial.size() == parallel.size() &&
              std::memcmp(serial.data(), parallel.data(), serial.size() * sizeof(double)) == 0;
    }
    MPI_Bcast(&equal, 1, MPI_INT, 0, grid.context().comm());
    return equal != 0;
  }

  // The cells of `box` (local indices) that are not on the fixed boundary of the whole grid.
  laplace::Region region(const tasuki::Box& box) const {
    laplace::Region region{.stride = u.strides()[0]};
    for (int d = 0; d < 2; ++d) {
      const std::int64_t to_local = u.local_owned().lo[d] - u.owned().lo[d];
      region.lo[d] = std::max(box.lo[d], 1 + to_local);
      region.hi[d] = std::min(box.hi[d], grid.extent(d) - 1 + to_local);
    }
    return region;
  }

  tasuki::Grid grid;
  tasuki::Field<double> u;
  tasuki::Halo halo;
  apps::Options options;
  double local_change = 0;
};

// The two copies of all ranks and, for a comparison, on rank 0 the serial run's two and the gathered values.
std::int64_t memory_needed(const tasuki::Grid& grid, bool verify) {
  const tasuki::Box own = grid.owned();
  std::int64_t cells = own.empty() ? 0 : 2 * (own.extent(0) + 2) * (own.extent(1) + 2);
  if (verify) cells += own.cells();
  if (verify && grid.context().is_root()) cells += 4 * grid.extent(0) * grid.extent(1);
  return cells * static_cast<std::int64_t>(sizeof(double));
}

int laplace_main(const tasuki::Context& context, const apps::Options& options) {
  {
    const tasuki::Grid grid(context, options.extents, options.grid());
    apps::require_memory(context, memory_needed(grid, options.verify),
                         fmt::format("laplace {}{}", options.size, options.verify ? " with --verify" : ""));
  }
  Solver solver(context, options);
  const auto from_start = [&solver](int iterations) {
    solver.initialise();
    return solver.run(iterations);
  };
  apps::Result result;
  result.iterations = apps::choose_iterations(context, options, from_start);
  apps::reduce_times(context, from_start(result.iterations), result);
  result.norm_name = "change";
  result.norm = solver.change();
  result.flops_per_iteration = laplace::kFlopsPerCell;
  for (const auto extent : options.extents) result.flops_per_iteration *= static_cast<double>(extent - 2);
  if (options.verify) result.verified = solver.equals_serial(result.iterations);
  return apps::report(solver.grid, kInfo.name, options, solver.halo, result);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program(argc, argv, [&](const tasuki::Context& context) {
    return laplace_main(context, apps::parse_options(context, argc, argv, kInfo));
  });
}
