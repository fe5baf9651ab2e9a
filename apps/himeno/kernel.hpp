// The 19-point stencil of the Himeno benchmark, on plain arrays: shared by the parallel and the serial solver.
#pragma once

#include <array>
#include <cstdint>

namespace himeno {

inline constexpr float kOmega = 0.8F;  ///< relaxation
inline constexpr double kFlopsPerCell = 34;

/// The coefficients of the equation, a value a cell, all laid out like the pressure.
struct Coefficients {
  std::array<const float*, 4> a{};
  std::array<const float*, 3> b{};
  std::array<const float*, 3> c{};
  const float* bnd = nullptr;   ///< 1 where the pressure is unknown, 0 where it is given
  const float* wrk1 = nullptr;  ///< source term
};

/// Cells lo <= (i, j, k) < hi of arrays in which a step in i and in j takes so many elements.
struct Region {
  std::array<std::int64_t, 3> lo{};
  std::array<std::int64_t, 3> hi{};
  std::int64_t stride_i = 0;
  std::int64_t stride_j = 0;
};

/// One Jacobi step: reads the pressure `p` in the region and one cell around it and writes the new one to `next` in the
/// region. Returns the sum of the squared residuals ("gosa"). Every cell's arithmetic is the same in every call.
double sweep(const Coefficients& coefficients, const float* p, float* next, const Region& region);

}  // namespace himeno
