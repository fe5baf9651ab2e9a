// The GPU's clock, and its offset from the host's.
#pragma once

#include <cstdint>

#include "tasuki/device.hpp"

namespace tasuki {

__device__ inline std::uint64_t now_ns() {
  std::uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

/// What to add to the current GPU's clock to get `Recorder::now()`, in ns; good to about a microsecond. Waits for
/// `stream`, which should be idle. Throws `Error` if the GPU does not answer.
std::int64_t gpu_clock_offset(Stream stream);

}  // namespace tasuki
