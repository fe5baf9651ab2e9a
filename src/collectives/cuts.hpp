// Vectors cut into parts that travel one after the other, each over a link of its own: what has arrived is added up
// while the next part travels. GPUs do it so, whose chunk loops no copy engine runs.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

struct Part {
  int number = 0;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

/// Parts of about `chunk` bytes, or one if that is 0: at most 16, which begin on cache lines.
std::vector<Part> parts_of(std::int64_t bytes, std::int64_t chunk);
/// Bytes of the largest.
std::int64_t part_bytes(std::int64_t bytes, std::int64_t chunk);

/// `Algorithm::settings` of algorithms that cut: in host memory, and of small vectors, one part.
std::vector<Parameters> cut_settings(const Collective& collective, const Parameters& wanted);

}  // namespace tasuki
