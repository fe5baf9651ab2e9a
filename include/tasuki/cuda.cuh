// Checked CUDA calls and early launches, for Tasuki's own .cu files and for programs with kernels of their own.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <type_traits>

#include "tasuki/error.hpp"

namespace tasuki {

/// Throws `Error` with the call, the current GPU and CUDA's text for `code`, unless `code` is success.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // a failed call must not be reported again by the next
  int device = -1;
  cudaGetDevice(&device);
  throw Error(std::string(call) + " on GPU " + std::to_string(device) + " failed: " + cudaGetErrorString(code) + " (" +
              cudaGetErrorName(code) + ")");
}

#ifdef __CUDACC__
/// For kernels that are launched early: returns when all earlier work of the stream has ended and its stores are
/// visible.
__device__ inline void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// The next kernel of the stream, if it is launched early, may begin once every block of this kernel has called this
/// function or ended. Call it only after `wait_for_stream`.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif

/// Launches `kernel` in `stream` as a "programmatic dependent launch": its blocks may begin as soon as all blocks of
/// the kernel before it have ended or called `let_next_begin`, about a microsecond earlier than with an ordinary
/// launch. Each block must call `wait_for_stream` before it touches memory that earlier work of the stream writes or
/// reads. The launch is an ordinary one if the work before it is not a kernel, and on GPUs below compute
/// capability 9.0. Local; the stream belongs to the current GPU. Throws as `check_cuda` does, with `what` for the call.
template <class... Parameters>
void launch_early(const char* what, cudaStream_t stream, unsigned blocks, unsigned threads,
                  void (*kernel)(Parameters...), const std::type_identity_t<Parameters>&... arguments) {
  thread_local int known = -1;  // of this GPU: asking at every launch takes longer than asking which it is
  thread_local int capability = 0;
  int device = 0;
  check_cuda(cudaGetDevice(&device), what);
  if (device != known) {
    check_cuda(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device), what);
    known = device;
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = capability >= 9 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

/// `TASUKI_CUDA(cudaMalloc, &p, bytes)` calls and checks. After a kernel launch: `TASUKI_CUDA(cudaGetLastError)`.
#define TASUKI_CUDA(call, ...) ::tasuki::check_cuda(call(__VA_ARGS__), #call)

}  // namespace tasuki
