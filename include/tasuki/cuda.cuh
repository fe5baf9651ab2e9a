// Checked CUDA calls, for Tasuki's own .cu files and for programs that bring kernels of their own.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "tasuki/error.hpp"

namespace tasuki {

/// Throws `Error` with the call, the current GPU and CUDA's words for `code` unless that is success.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // a failed call must not be reported again by the next
  int device = -1;
  cudaGetDevice(&device);
  throw Error(std::string(call) + " on GPU " + std::to_string(device) + " failed: " + cudaGetErrorString(code) + " (" +
              cudaGetErrorName(code) + ")");
}

/// `TASUKI_CUDA(cudaMalloc, &p, bytes)` calls and checks. After a kernel launch: `TASUKI_CUDA(cudaGetLastError)`.
#define TASUKI_CUDA(call, ...) ::tasuki::check_cuda(call(__VA_ARGS__), #call)

}  // namespace tasuki
