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

  // In the order of the coefficients below: a0 a1 a2 a3, b0 b1 b2, c0 c1 c2, bnd, wrk1.
  constexpr std::array<float, kArrays - 2> values = {1, 1, 1, 1.0F / 6, 0, 0, 0, 1, 1, 1, 1, 0};
  std::vector<std::vector<float>> array;
  for (const float value : values) array.emplace_back(cells, value);
  const Coefficients coefficients{{array[0].data(), array[1].data(), array[2].data(), array[3].data()},
                                  {array[4].data(), array[5].data(), array[6].data()},
                                  {array[7].data(), array[8].data(), array[9].data()},
                                  array[10].data(),
                                  array[11].data()};
  const Region interior{{1, 1, 1}, {extents[0] - 1, extents[1] - 1, extents[2] - 1}, plane, extents[2]};
  for (int n = 0; n < iterations; ++n) {
    sweep(coefficients, p.data(), next.data(), interior);
    p.swap(next);
  }
  return p;
}

}  // namespace himeno
