// The values that a field is filled with before an exchange: a number of 64 bits, of which a cell keeps what fits.
#pragma once

#include <cstdint>

namespace bench {

/// A box of a field in cells, for indices from 0 to `cells()` with the last dimension fastest.
struct CellBox {
  std::int64_t lo[3];
  std::int64_t extent[3];
  std::int64_t stride[3];
  __host__ __device__ std::int64_t cells() const { return extent[0] * extent[1] * extent[2]; }
  __host__ __device__ std::int64_t at(std::int64_t n) const {
    const std::int64_t row = n / extent[2];
    return (lo[0] + row / extent[1]) * stride[0] + (lo[1] + row % extent[1]) * stride[1] +
           (lo[2] + n % extent[2]) * stride[2];
  }
};

// Every bit of the result depends on every bit of `x`, and different `x` give different results.
__host__ __device__ inline std::uint64_t scattered(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

/// What all cells of a field have in common.
__host__ __device__ inline std::uint64_t seed_of(int rank, int field, int round) {
  return scattered((static_cast<std::uint64_t>(round) << 40) + (static_cast<std::uint64_t>(field) << 20) +
                   static_cast<std::uint64_t>(rank) + 1);
}

template <class Word>
__host__ __device__ Word value_of(std::uint64_t seed, std::int64_t cell) {
  return static_cast<Word>(scattered(seed + static_cast<std::uint64_t>(cell)));
}

}  // namespace bench
