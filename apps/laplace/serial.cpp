// The same problem on one rank, without Tasuki.
#include "laplace/serial.hpp"

#include "laplace/kernel.hpp"

namespace laplace {

std::vector<double> solve_serially(std::int64_t rows, std::int64_t columns, int iterations) {
  std::vector<double> u(rows * columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) u[i * columns + j] = initial_value(i, j, rows);
  }
  std::vector<double> next = u;
  for (int n = 0; n < iterations; ++n) {
    sweep(u.data(), next.data(), {{1, 1}, {rows - 1, columns - 1}, columns});
    u.swap(next);
  }
  return u;
}

}  // namespace laplace
