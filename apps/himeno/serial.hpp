// The same problem on one rank, without Tasuki: what a parallel run is compared with.
#pragma once

#include <cstdint>
#include <vector>

namespace himeno {

inline constexpr int kArrays = 14;  ///< arrays of the benchmark: 4 a, 3 b, 3 c, bnd, wrk1 and two of pressure

/// The initial pressure: it depends on the first global index only.
inline float initial_pressure(std::int64_t i, std::int64_t extent) {
  return static_cast<float>(i * i) / static_cast<float>((extent - 1) * (extent - 1));
}

/// The pressure after `iterations`, row-major.
std::vector<float> solve_serially(const std::vector<std::int64_t>& extents, int iterations);

}  // namespace himeno
