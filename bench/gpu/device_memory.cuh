// Memory of this rank's GPU that is given back by itself.
#pragma once

#include <cstddef>
#include <memory>

#include "tasuki/cuda.cuh"

namespace bench {

using DeviceMemory = std::shared_ptr<std::byte>;

/// Zero-filled. At least one byte, so that there is always a pointer.
inline DeviceMemory device_memory(std::size_t bytes) {
  void* p = nullptr;
  TASUKI_CUDA(cudaMalloc, &p, bytes > 0 ? bytes : 1);
  DeviceMemory memory(static_cast<std::byte*>(p), [](std::byte* m) { cudaFree(m); });
  TASUKI_CUDA(cudaMemset, p, 0, bytes > 0 ? bytes : 1);
  TASUKI_CUDA(cudaStreamSynchronize, nullptr);
  return memory;
}

}  // namespace bench
