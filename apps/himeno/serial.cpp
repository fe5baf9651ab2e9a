// The same problem on one rank, without Tasuki.
#include "himeno/serial.hpp"

#include <algorithm>
#include <array>

#include "himeno/kernel.hpp"

namespace himeno {

std::vector<float> solve_serially(const std::vector<std::int64_t>& extents, int iterations) {
  const std::int64_t plane = extents[1] * extents[2];
  const std::int64_t cells = extents[0] * plane;
  std::vector<float> p(cells);
  for (std::int64_t i = 0; i < extents[0]; ++i) {
    std::fill_n(p.begin() + i * plane, plane, initial_pressure(i, extents[0]));
  }
  std::vector<float> next = p;

  std::vector<std::vector<float>> arrays;
  std::array<const float*, kArrays.size()> at{};
  for (std::size_t n = 0; n < at.size(); ++n) {
    arrays.emplace_back(cells, kArrays[n].value);
    at[n] = arrays.back().data();  // which moving the vector does not change
  }
  const Coefficients coefficients = coefficients_in(at);
  const Region interior{{1, 1, 1}, {extents[0] - 1, extents[1] - 1, extents[2] - 1}, plane, extents[2]};
  for (int n = 0; n < iterations; ++n) {
    sweep(coefficients, p.data(), next.data(), interior);
    p.swap(next);
  }
  return p;
}

}  // namespace himeno
