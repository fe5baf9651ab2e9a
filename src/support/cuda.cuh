// What the CUDA sources share: checked calls. No fmt here: it does not compile with nvcc.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "tasuki/error.hpp"

namespace tasuki {

inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // a failed call must not be reported again by the next
  int device = -1;
  cudaGetDevice(&device);
  throw Error(std::string(call) + " on GPU " + std::to_string(device) + " failed: " + cudaGetErrorString(code) + " (" +
              cudaGetErrorName(code) + ")");
}

#define TASUKI_CUDA(call, ...) ::tasuki::check_cuda(call(__VA_ARGS__), #call)

}  // namespace tasuki
