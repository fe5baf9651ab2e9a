// The 19-point stencil of the Himeno benchmark, on plain arrays: shared by the parallel and the serial solver.
#pragma once

#include <array>
#include <cstdint>

namespace himeno {

inline constexpr float kOmega = 0.8F;  ///< relaxation
inline constexpr double kFlopsPerCell = 34;
inline constexpr double kBytesPerCell = 56;  // the pressure, twelve coefficients, the next pressure

/// The coefficients of the equation, a value a cell, all laid out like the pressure.
struct Coefficients {
  std::array<const float*, 4> a{};
  std::array<const float*, 3> b{};
  std::array<const float*, 3> c{};
  const float* bnd = nullptr;   ///< 1 where the pressure is unknown, 0 where it is given
  const float* wrk1 = nullptr;  ///< source term
};

/// An array of the equation and the constant that the benchmark fills it with.
struct Array {
  const char* name;
  float value;
};
inline constexpr std::array<Array, 12> kArrays = {{{"a0", 1},
                                                   {"a1", 1},
                                                   {"a2", 1},
                                                   {"a3", 1.0F / 6},
                                                   {"b0", 0},
                                                   {"b1", 0},
                                                   {"b2", 0},
                                                   {"c0", 1},
                                                   {"c1", 1},
                                                   {"c2", 1},
                                                   {"bnd", 1},
                                                   {"wrk1", 0}}};

/// The coefficients in arrays that are in the order of `kArrays`.
inline Coefficients coefficients_in(const std::array<const float*, kArrays.size()>& at) {
  return {{at[0], at[1], at[2], at[3]}, {at[4], at[5], at[6]}, {at[7], at[8], at[9]}, at[10], at[11]};
}

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
