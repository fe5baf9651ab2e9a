// What a report says of the GPUs.
#include <mpi.h>

#include <fstream>
#include <set>

#include "gpu/problem.hpp"
#include "tasuki/cuda.cuh"

namespace bench {
namespace {

// The driver's own number, such as 580.65.06.
std::string driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return "unknown";
}

std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> gpu_machine(const tasuki::Context& context) {
  int ordinal = 0;
  int runtime = 0;
  int most = 0;
  cudaDeviceProp properties{};
  TASUKI_CUDA(cudaSetDevice, tasuki::use_gpu(context));
  TASUKI_CUDA(cudaGetDevice, &ordinal);
  TASUKI_CUDA(cudaGetDeviceProperties, &properties, ordinal);
  TASUKI_CUDA(cudaRuntimeGetVersion, &runtime);
  TASUKI_CUDA(cudaDriverGetVersion, &most);
  constexpr int kBytes = sizeof properties.uuid;
  std::vector<char> all(static_cast<std::size_t>(context.size()) * kBytes);
  MPI_Allgather(&properties.uuid, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, context.comm());
  std::set<std::string> different;
  for (int rank = 0; rank < context.size(); ++rank) different.emplace(all.data() + rank * kBytes, kBytes);
  return {{"gpu", properties.name},
          {"gpus", std::to_string(different.size())},
          {"driver", driver() + " (CUDA " + cuda_version(most) + ")"},
          {"cuda", cuda_version(runtime)},
          {"nccl", nccl_version()},
          {"nvshmem", nvshmem_version()}};
}

}  // namespace bench
