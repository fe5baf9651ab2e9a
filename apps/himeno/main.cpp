// himeno: the Himeno benchmark (Jacobi's method for Poisson's equation, 19 points, single precision) on Tasuki.
//   mpirun -n 4 himeno --size M --split 2x2x1 --verify
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "common/jacobi.hpp"
#include "common/program.hpp"
#include "himeno/serial.hpp"
#include "himeno/solver.hpp"

namespace {

const apps::AppInfo kInfo{
    "himeno",
    "The Himeno benchmark: Jacobi's method for Poisson's equation in three dimensions",
    3,
    "M",
    {{"XS", {32, 32, 64}},
     {"S", {64, 64, 128}},
     {"M", {128, 128, 256}},
     {"L", {256, 256, 512}},
     {"XL", {512, 512, 1024}},
     {"LX", {1025, 513, 513}},
     {"LLX", {2049, 513, 513}}},
};

// Gosa after three iterations, as the benchmark publishes it.
const std::map<std::vector<std::int64_t>, double> kKnownGosa = {
    {{32, 32, 64}, 6.229796e-03},
    {{64, 64, 128}, 3.296794e-03},
    {{128, 128, 256}, 1.693459e-03},
    {{256, 256, 512}, 8.606862e-04},
};

void check_gosa(const apps::Options& options, apps::Result& result) {
  const auto known = kKnownGosa.find(options.extents);
  if (result.iterations != 3 || known == kKnownGosa.end()) return;
  result.norm_wrong = !(std::abs(result.norm - known->second) < 1e-6 * known->second);
  result.norm_remark =
      result.norm_wrong ? fmt::format("  known gosa: WRONG, it is {:.6e}", known->second) : "  known gosa: ok";
}

// On the hosts: all ranks' arrays with their shadows, unless those are on GPUs; for a comparison also this rank's
// pressure on its way to rank 0, and there the serial run's arrays and the gathered pressure.
std::int64_t memory_needed(const tasuki::Grid& grid, bool on_gpus, bool verify) {
  constexpr std::int64_t kAll = himeno::kArrays.size() + 2;
  const tasuki::Box own = grid.owned();
  std::int64_t cells = 0;
  if (!own.empty() && !on_gpus) cells += kAll * (own.extent(0) + 2) * (own.extent(1) + 2) * (own.extent(2) + 2);
  if (verify) cells += (on_gpus ? 2 : 1) * own.cells();
  if (verify && grid.context().is_root()) cells += (kAll + 2) * grid.extent(0) * grid.extent(1) * grid.extent(2);
  return cells * static_cast<std::int64_t>(sizeof(float));
}

const apps::Equation kEquation{
    .norm_name = "gosa",
    .flops_per_cell = himeno::kFlopsPerCell,
    .bytes_per_cell = himeno::kBytesPerCell,
    .memory_needed = memory_needed,
    .on_cpus = himeno::make_cpu_solver,
    .resident_on_cpus = himeno::make_cpu_resident,
#ifdef TASUKI_HAVE_CUDA
    .on_gpus = himeno::make_gpu_solver,
    .resident_on_gpus = himeno::make_gpu_resident,
#endif
    .check_norm = check_gosa,
};

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program(argc, argv, kInfo, [](const tasuki::Context& context, const apps::Options& options) {
    return apps::solve(context, options, kInfo, kEquation);
  });
}
