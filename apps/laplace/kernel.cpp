// The 5-point stencil.
#include "laplace/kernel.hpp"

#include <cmath>

namespace laplace {
namespace {

double sweep_row(const double* above, const double* row, const double* below, double* __restrict next, std::int64_t lo,
                 std::int64_t hi) {
  double change = 0;
#pragma omp simd reduction(max : change)
  for (std::int64_t j = lo; j < hi; ++j) {
    next[j] = 0.25 * ((above[j] + below[j]) + (row[j - 1] + row[j + 1]));
    const double difference = std::abs(next[j] - row[j]);
    change = difference > change ? difference : change;
  }
  return change;
}

}  // namespace

double sweep(const double* u, double* next, const Region& region) {
  double change = 0;
  for (std::int64_t i = region.lo[0]; i < region.hi[0]; ++i) {
    const double* row = u + i * region.stride;
    const double row_change =
        sweep_row(row - region.stride, row, row + region.stride, next + i * region.stride, region.lo[1], region.hi[1]);
    change = row_change > change ? row_change : change;
  }
  return change;
}

}  // namespace laplace
