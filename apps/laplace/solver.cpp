// What solving on CPUs and on GPUs have in common.
#include "laplace/solver.hpp"

#include <algorithm>
#include <vector>

#include "common/deal.hpp"
#include "common/gather.hpp"
#include "laplace/serial.hpp"

namespace laplace {

Solver::Solver(const tasuki::Context& context, const apps::Options& options, tasuki::Memory memory)
    : grid_(context, options.extents, options.grid()),
      options_(options),
      u_(grid_, layout(memory)),
      halo_(make_halo({})) {}

// The stencil has no corners.
tasuki::Halo Solver::make_halo(const std::vector<std::vector<std::int64_t>>& cuts) const {
  return tasuki::Halo(tasuki::HaloField(u_, 1), apps::halo_options(options_, u_, /*corners=*/false, cuts));
}

// On a GPU every row's first cell lies at a multiple of 128 bytes, so that 32 threads read whole lines (on ranks with
// as many cells in a row as the first has; the others read single cells).
tasuki::FieldOptions Solver::layout(tasuki::Memory memory) const {
  tasuki::FieldOptions options{.name = "u", .shadow = 1, .copies = 2, .memory = memory};
  if (memory == tasuki::Memory::host) return options;
  constexpr std::int64_t kLine = 128 / sizeof(double);
  options.shadow.lo[1] = kLine;
  const std::int64_t row = kLine + grid_.owned(0).extent(1) + options.shadow.hi[1];
  options.pad = (kLine - row % kLine) % kLine;
  return options;
}

Region Solver::region(const tasuki::Box& box) const {
  const tasuki::Box cells = apps::not_fixed(u_, box);
  Region region{.stride = u_.strides()[0]};
  std::copy_n(cells.lo.begin(), region.lo.size(), region.lo.begin());
  std::copy_n(cells.hi.begin(), region.hi.size(), region.hi.begin());
  return region;
}

std::vector<Region> Solver::regions(const std::vector<tasuki::Box>& boxes) const {
  std::vector<Region> all(boxes.size());
  std::transform(boxes.begin(), boxes.end(), all.begin(), [this](const tasuki::Box& box) { return region(box); });
  return all;
}

void Solver::start_on_host() {
  u_.swap();  // once between two exchanges, as promised by `alternating`
  double* const now = u_.data();
  double* const next = u_.next();  // its fixed cells are never computed
  u_.for_each([&](const tasuki::Index& at, double& cell) {
    next[&cell - now] = cell = initial_value(at[0], at[1], grid_.extent(0));
  });
}

double Solver::norm() const {
  const std::vector<double> changes = grid_.context().allgather(local_change());
  return *std::max_element(changes.begin(), changes.end());
}

bool Solver::equals_serial(int iterations) const {
  return apps::equals_serial(u_, [&] { return solve_serially(grid_.extent(0), grid_.extent(1), iterations); });
}

}  // namespace laplace
