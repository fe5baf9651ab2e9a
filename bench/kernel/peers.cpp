// What all peers of tasuki-bench-kernel ask first.
#include "peers.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

namespace peers {

std::string agreed(const tasuki::Context& context, const std::string& why_not) {
  std::array<char, 256> mine{};
  std::strncpy(mine.data(), why_not.c_str(), mine.size() - 1);
  for (const auto& text : context.allgather(mine))
    if (text[0] != 0) return text.data();
  return {};
}

std::string why_not_shared(const tasuki::Context& context) {
  int gpu = 0;
  cudaDeviceProp properties{};
  const bool known = cudaGetDevice(&gpu) == cudaSuccess && cudaGetDeviceProperties(&properties, gpu) == cudaSuccess;
  std::array<char, sizeof properties.uuid> mine{};
  std::memcpy(mine.data(), &properties.uuid, mine.size());
  const auto all = context.allgather(mine);
  const bool meant = std::getenv("TASUKI_TEST_SHARED_GPUS") != nullptr;
  std::string why;
  if (!known) why = "it is not known which GPU this is";
  if (!meant && std::set(all.begin(), all.end()).size() != all.size()) why = "ranks share a GPU";
  return agreed(context, why);
}

}  // namespace peers
