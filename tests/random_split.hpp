// Splits of grids for tests.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

/// `ranks` as a product of one factor for each dimension, its primes dealt out at random.
inline std::vector<int> random_split(int ranks, int dims, std::mt19937& random) {
  std::vector<int> split(static_cast<std::size_t>(dims), 1);
  for (int factor = 2; ranks > 1;) {
    if (ranks % factor != 0) {
      ++factor;
      continue;
    }
    split[random() % split.size()] *= factor;
    ranks /= factor;
  }
  return split;
}
