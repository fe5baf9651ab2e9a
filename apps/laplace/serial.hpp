// The same problem on one rank, without Tasuki: what a parallel run is compared with.
#pragma once

#include <cstdint>
#include <vector>

namespace laplace {

/// The start: 0 inside, and on the boundary, where it stays, 1 along the first row and a slope down the first column.
constexpr double initial_value(std::int64_t i, std::int64_t j, std::int64_t rows) {
  if (i == 0) return 1;
  return j == 0 ? static_cast<double>(rows - 1 - i) / static_cast<double>(rows - 1) : 0;
}

/// The values after `iterations`, row-major.
std::vector<double> solve_serially(std::int64_t rows, std::int64_t columns, int iterations);

}  // namespace laplace
