// Jacobi steps on GPUs as one kernel for all of them, which exchanges by itself: no launch a step, and nothing for the
// host to do. The cells are cut into tiles, a block has the same tiles in every step. On CPUs: resident.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/report.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace apps {

template <class T>
struct ResidentSteps {
  T* copies[2];
  int first;  // the copy that the first step computes
  int count;
  std::uint32_t side_tiles;  // which come first; they are computed before the halo starts
  std::uint32_t tiles;       // in all
};

#ifdef __CUDACC__

/// Calls `f` with this block's tiles and their numbers among the block's: those at the sides, or the others. Tiles are
/// dealt out in turns: sides to the first blocks, which send, the others to the last ones.
template <class T, class F>
__device__ void each_tile(const ResidentSteps<T>& steps, bool sides, int& turn, const F& f) {
  const std::uint32_t first = sides ? blockIdx.x : steps.side_tiles + (gridDim.x - 1 - blockIdx.x);
  for (std::uint32_t tile = first; tile < (sides ? steps.side_tiles : steps.tiles); tile += gridDim.x) f(tile, turn++);
}

/// All steps: in each `begin()`, then `sweep(from, to, tile, turn)` for this block's tiles. False if an exchange has
/// failed.
template <class T, class Begin, class Sweep>
__device__ bool run_steps(const tasuki::device::Handle& halo, const ResidentSteps<T>& steps, const Begin& begin,
                          const Sweep& sweep) {
  namespace device = tasuki::device;
  const auto grid = device::this_grid();
  for (int n = 0; n < steps.count; ++n) {
    T* const to = steps.copies[(steps.first + n) % 2];
    const T* const from = steps.copies[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `to` is what is exchanged
    const auto one = [&](std::uint32_t tile, int turn) { sweep(from, to, tile, turn); };
    int turn = 0;
    begin();
    each_tile(steps, true, turn, one);
    if (steps.side_tiles == steps.tiles) {  // nothing is left to do meanwhile
      if (!device::run(halo, grid, swaps)) return false;
      continue;
    }
    if (!device::start(halo, grid, swaps)) return false;
    each_tile(steps, false, turn, one);
    if (!device::wait(halo, grid, swaps)) return false;
  }
  return true;
}

#endif

inline int gpu_attribute(cudaDeviceAttr which) {
  int gpu = 0;
  int value = 0;
  TASUKI_CUDA(cudaGetDevice, &gpu);
  TASUKI_CUDA(cudaDeviceGetAttribute, &value, which, gpu);
  return value;
}

/// Blocks of the kernel that fit on a multiprocessor.
template <class Kernel>
int blocks_each(Kernel* kernel, int threads) {
  int each = 0;
  TASUKI_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &each, reinterpret_cast<const void*>(kernel), threads, 0);
  return each;
}

/// As many blocks as there are tiles, if so many are on the GPU at once.
template <class Kernel>
tasuki::KernelGroup resident_group(Kernel* kernel, int threads, std::int64_t tiles) {
  const int most = blocks_each(kernel, threads) * gpu_attribute(cudaDevAttrMultiProcessorCount);
  tasuki::KernelGroup group;
  group.threads = threads;
  group.blocks = static_cast<int>(std::clamp<std::int64_t>(tiles, 1, most));
  return group;
}

/// Runs `kernel(handle, data, steps)`, a kernel that calls `run_steps`, on a field with two copies and its alternating
/// halo. Collective.
template <class T, class Data, class Steps>
Timing run_resident(const tasuki::Context& context, tasuki::Field<T>& field, tasuki::Halo& halo, int iterations,
                    const tasuki::KernelGroup& group, tasuki::ResidentOptions launch,
                    void (*kernel)(tasuki::device::Handle, Data, Steps), const Data& data, Steps steps) {
  steps.copies[0] = field.data(0);
  steps.copies[1] = field.data(1);
  steps.first = 1 - field.current();
  steps.count = iterations;
  launch.blocks = group.blocks;
  launch.threads = group.threads;
  const tasuki::device::Handle handle = halo.device(group);
  context.barrier();
  const double begin = now();
  tasuki::launch_resident(context, launch, kernel, handle, data, steps).wait();
  const double took = now() - begin;
  for (int n = 0; n < iterations; ++n) field.swap();  // as the kernel did
  return {took, took};
}

}  // namespace apps
