// What the parts of tasuki-bench-typed share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Times sub-matrices of a large matrix, with their lines in the caches or (`cold`) out of them, and prints them.
void submatrices(int rank, bool cold);
