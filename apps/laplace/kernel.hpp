// The 5-point stencil of Laplace's equation, on plain arrays: shared by the parallel and the serial solver.
#pragma once

#include <array>
#include <cstdint>

namespace laplace {

inline constexpr double kFlopsPerCell = 4;
inline constexpr double kBytesPerCell = 16;  // the value and the next one

/// Cells lo <= (i, j) < hi of arrays in which a step in i takes `stride` elements.
struct Region {
  std::array<std::int64_t, 2> lo{};
  std::array<std::int64_t, 2> hi{};
  std::int64_t stride = 0;
};

/// One Jacobi step: every cell of the region in `next` becomes the mean of its four neighbours in `u`. Returns the
/// largest change. Every cell's arithmetic is the same in every call.
double sweep(const double* u, double* next, const Region& region);

}  // namespace laplace
