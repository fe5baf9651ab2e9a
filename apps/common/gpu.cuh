// What the apps' kernels share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tasuki/error.hpp"

namespace apps {

/// By all threads of a block of so many, a multiple of 32: puts what they have, joined two by two, into the block's
/// place.
template <int kThreads, class Join>
__device__ void keep_of_block(double mine, double* places, const Join& join) {
  __shared__ double of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) mine = join(mine, __shfl_xor_sync(~0u, mine, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) mine = join(mine, of_warp[warp]);
  places[blockIdx.x] = mine;
}

template <class Region>
bool is_empty(const Region& region) {
  for (std::size_t d = 0; d < region.lo.size(); ++d) {
    if (region.lo[d] >= region.hi[d]) return true;
  }
  return false;
}

/// Those of the regions that have cells. A launch has room for so many.
template <class Region>
std::vector<Region> without_empty(const std::vector<Region>& regions, int most) {
  std::vector<Region> all;
  for (const Region& region : regions) {
    if (!is_empty(region)) all.push_back(region);
  }
  if (all.size() > static_cast<std::size_t>(most))
    throw tasuki::Error("a sweep of more than " + std::to_string(most) + " regions; use two sweeps");
  return all;
}

}  // namespace apps
