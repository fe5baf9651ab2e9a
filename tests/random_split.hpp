// Splits and cuts of grids for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Up to so many indices in each dimension, ascending, some of them at the ends; at times none at all.
inline std::vector<std::vector<std::int64_t>> random_cuts(const std::vector<std::int64_t>& extents, int most,
                                                          std::mt19937& random) {
  std::vector<std::vector<std::int64_t>> cuts;
  if (random() % 2 == 0) return cuts;
  for (const std::int64_t extent : extents) {
    auto& mine = cuts.emplace_back();
    for (auto n = random() % static_cast<unsigned>(most + 1); n > 0; --n)
      mine.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(extent + 1)));
    std::sort(mine.begin(), mine.end());
  }
  return cuts;
}
