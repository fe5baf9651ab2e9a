// What a query of a stream or an event says of the work on the GPU.
#pragma once

#include "memory/gpu.hpp"
#include "tasuki/cuda.cuh"

namespace tasuki {

/// True if the work has ended. `code` is what `call` returned. Throws `GpuFailure`.
inline bool has_ended(cudaError_t code, const char* call) {
  if (code == cudaErrorNotReady) return false;
  try {
    check_cuda(code, call);
  } catch (const Error& error) {
    throw GpuFailure(error.what());
  }
  return true;
}

}  // namespace tasuki
