// The norm of a step on a GPU, by hand: a block's threads combine their values, then one block what all blocks have. In
// an order that the sizes alone decide.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace step_norm {

struct Sum {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Largest {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

// Of all threads of a block along x, a power of two up to 1024; thread 0 has the result.
template <class Join>
__device__ double of_block(double mine, Join join) {
  __shared__ double all[1024];
  all[threadIdx.x] = mine;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = join(all[threadIdx.x], all[threadIdx.x + half]);
  }
  return all[0];
}

template <class Join>
__device__ void put(double* parts, double mine, Join join) {
  const double whole = of_block(mine, join);
  if (threadIdx.x == 0)
    parts[(static_cast<std::int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = whole;
}

template <class Join>
__global__ void of_blocks(const double* parts, std::int64_t count, double* result, Join join) {
  double mine = 0;
  for (std::int64_t n = threadIdx.x; n < count; n += blockDim.x) mine = join(mine, parts[n]);
  mine = of_block(mine, join);
  if (threadIdx.x == 0) *result = mine;
}

}  // namespace step_norm
