// The same problem on one rank, without Tasuki: what a parallel run is compared with.
#pragma once

#include <cstdint>
#include <vector>

namespace himeno {

/// The initial pressure: it depends on the first global index only.
constexpr float initial_pressure(std::int64_t i, std::int64_t extent) {
  return static_cast<float>(i * i) / static_cast<float>((extent - 1) * (extent - 1));
}

/// The pressure after `iterations`, row-major.
std::vector<float> solve_serially(const std::vector<std::int64_t>& extents, int iterations);

}  // namespace himeno
