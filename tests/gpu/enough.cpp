// GPU tests need a GPU a rank: two processes on one GPU take turns of milliseconds, so that signals between them crawl,
// unless the Multi-Process Service runs. TASUKI_TEST_SHARED_GPUS runs them all the same. Threads on one GPU are
// refused, whatever it says.
#include <cuda_runtime_api.h>
#include <mpi.h>

#include <cstdlib>
#include <string>

#include "tasuki/device.hpp"

extern std::string (*why_skip)(int ranks);

namespace {

const bool told_to_skip = [] {
  why_skip = [](int ranks) {
    const std::string why = tasuki::why_no_gpu();
    if (!why.empty()) return "no GPU tests: " + why;
    int count = 0;
    cudaGetDeviceCount(&count);
    int processes = 0;
    MPI_Initialized(&processes);
    if (count >= ranks || (processes != 0 && std::getenv("TASUKI_TEST_SHARED_GPUS") != nullptr)) return std::string();
    const std::string hint =
        processes != 0 ? " (TASUKI_TEST_SHARED_GPUS=1 runs them all the same: slowly without MPS, and without NCCL)"
                       : "";
    return "GPU tests on " + std::to_string(ranks) + " ranks need as many GPUs; this machine shows " +
           std::to_string(count) + hint;
  };
  return true;
}();

}  // namespace
