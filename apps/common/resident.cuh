// Jacobi steps on GPUs as one kernel for all of them, which exchanges by itself: what the apps' solvers share
// (resident_steps.hpp). On CPUs: resident.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/gpu.hpp"
#include "common/resident_steps.hpp"
#include "tasuki/cuda.cuh"

namespace apps {

inline int gpu_attribute(cudaDeviceAttr which) {
  int gpu = 0;
  int value = 0;
  TASUKI_CUDA(cudaGetDevice, &gpu);
  TASUKI_CUDA(cudaDeviceGetAttribute, &value, which, gpu);
  return value;
}

/// Memory of this rank's GPU for so many; not initialised.
template <class T>
std::shared_ptr<T> gpu_array(std::size_t count) {
  T* array = nullptr;
  TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&array), std::max<std::size_t>(1, count) * sizeof(T));
  return {array, [](T* p) { cudaFree(p); }};
}

template <class T>
std::shared_ptr<T> on_gpu(const std::vector<T>& values) {
  auto array = gpu_array<T>(values.size());
  TASUKI_CUDA(cudaMemcpy, array.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return array;
}

template <class T>
std::vector<T> from_gpu(const T* array, std::size_t count) {
  std::vector<T> values(count);
  TASUKI_CUDA(cudaMemcpy, values.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}

/// Blocks of the kernel that fit on a multiprocessor.
template <class Kernel>
int blocks_each(Kernel* kernel, int threads) {
  int each = 0;
  TASUKI_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor, &each, reinterpret_cast<const void*>(kernel), threads, 0);
  return each;
}

/// Tiles whose coefficients, `bytes` a tile, fit in shared memory beside those of the other blocks of a multiprocessor.
template <class Kernel>
int tiles_in_shared(Kernel* kernel, int threads, int bytes) {
  cudaFuncAttributes takes{};
  TASUKI_CUDA(cudaFuncGetAttributes, &takes, reinterpret_cast<const void*>(kernel));
  const int taken = static_cast<int>(takes.sharedSizeBytes) + gpu_attribute(cudaDevAttrReservedSharedMemoryPerBlock);
  const int each =
      gpu_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / std::max(1, blocks_each(kernel, threads));
  return (std::min(each, gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)) - taken) / bytes;
}

/// The steps of a solver of one field with two copies and its alternating halo. Every block leaves a number.
template <class T>
class GpuResidentSteps {
 public:
  /// As many blocks as there are tiles, if so many of `kernel` are on the GPU at once.
  template <class Kernel>
  GpuResidentSteps(const tasuki::FieldBase& field, const Tiling& tiling, bool exchanges, Kernel* kernel, int threads)
      : deal_(deal(tiling, blocks_for(tiling, kernel, threads), exchanges, Dealt::in_turns)),
        shares_(on_gpu(deal_.shares)),
        numbers_(gpu_array<double>(deal_.shares.size())),
        launches_(field, deal_, shares_.get(), threads) {}

  ResidentLaunches<T>& launches() { return launches_; }
  double* numbers() const { return numbers_.get(); }  ///< In the GPU's memory, by block.
  std::vector<double> numbers_on_host() const { return from_gpu(numbers_.get(), deal_.shares.size()); }

  /// Of a block, at most.
  int tiles() const {
    std::uint32_t most = 0;
    for (const Share& share : deal_.shares) most = std::max(most, tiles_of(share));
    return static_cast<int>(most);
  }

 private:
  template <class Kernel>
  static int blocks_for(const Tiling& tiling, Kernel* kernel, int threads) {
    const int most = blocks_each(kernel, threads) * gpu_attribute(cudaDevAttrMultiProcessorCount);
    return static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(tiling.work.size()), 1, std::max(1, most)));
  }

  Deal deal_;
  std::shared_ptr<Share> shares_;
  std::shared_ptr<double> numbers_;
  ResidentLaunches<T> launches_;
};

}  // namespace apps
