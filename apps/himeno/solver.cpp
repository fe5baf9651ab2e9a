// What solving on CPUs and on GPUs have in common.
#include "himeno/solver.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/deal.hpp"
#include "common/gather.hpp"
#include "himeno/serial.hpp"

namespace himeno {

Solver::Solver(const tasuki::Context& context, const apps::Options& options, tasuki::Memory memory)
    : grid_(context, options.extents, options.grid()),
      options_(options),
      p_(grid_, layout("p", memory)),
      halo_(make_halo({})) {
  std::array<const float*, kArrays.size()> at{};
  for (std::size_t n = 0; n < at.size(); ++n) {
    auto options_of_array = layout(kArrays[n].name, memory);
    options_of_array.copies = 1;
    arrays_.emplace_back(grid_, options_of_array);
    at[n] = arrays_.back().data();
  }
  coefficients_ = coefficients_in(at);
}

tasuki::Halo Solver::make_halo(const std::vector<std::vector<std::int64_t>>& cuts) const {
  return tasuki::Halo(tasuki::HaloField(p_, 1), apps::halo_options(options_, p_, /*corners=*/true, cuts));
}

// The coefficients are only read at the cell itself, but with the pressure's shadow they have its indices, too. On a
// GPU every row's first cell lies at a multiple of 128 bytes, so that 32 threads read whole lines (on ranks with as
// many cells in a row as the first has; the others read single cells).
tasuki::FieldOptions Solver::layout(const char* name, tasuki::Memory memory) const {
  tasuki::FieldOptions options{.name = name, .shadow = 1, .copies = 2, .memory = memory};
  if (memory == tasuki::Memory::host) return options;
  constexpr std::int64_t kLine = 128 / sizeof(float);
  options.shadow.lo[2] = kLine;
  const std::int64_t row = kLine + grid_.owned(0).extent(2) + options.shadow.hi[2];
  options.pad = (kLine - row % kLine) % kLine;
  return options;
}

Region Solver::region(const tasuki::Box& box) const {
  const tasuki::Box cells = apps::not_fixed(p_, box);
  Region region{.stride_i = p_.strides()[0], .stride_j = p_.strides()[1]};
  std::copy_n(cells.lo.begin(), region.lo.size(), region.lo.begin());
  std::copy_n(cells.hi.begin(), region.hi.size(), region.hi.begin());
  return region;
}

std::vector<Region> Solver::regions(const std::vector<tasuki::Box>& boxes) const {
  std::vector<Region> all(boxes.size());
  std::transform(boxes.begin(), boxes.end(), all.begin(), [this](const tasuki::Box& box) { return region(box); });
  return all;
}

void Solver::fill_on_host() {
  for (std::size_t n = 0; n < arrays_.size(); ++n)
    arrays_[n].for_each([n](const tasuki::Index&, float& cell) { cell = kArrays[n].value; });
}

void Solver::start_on_host() {
  p_.swap();  // once between two exchanges, as promised by `alternating`
  float* const now = p_.data();
  float* const next = p_.next();  // its fixed cells are never computed
  p_.for_each([&](const tasuki::Index& at, float& cell) {
    next[&cell - now] = cell = initial_pressure(at[0], grid_.extent(0));
  });
}

double Solver::norm() const {
  const std::vector<double> parts = grid_.context().allgather(local_gosa());
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

bool Solver::equals_serial(int iterations) const {
  return apps::equals_serial(p_, [&] { return solve_serially(options_.extents, iterations); });
}

}  // namespace himeno
