// The GPU's clock: see clock.cuh.
#include "engines/gpu/clock.cuh"

#include <atomic>
#include <limits>
#include <memory>

#include "memory/gpu.hpp"
#include "session/trace.hpp"
#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

constexpr int kAnswers = 64;

// In host memory that the GPU reaches.
struct Talk {
  std::uint64_t asked;
  std::uint64_t answers[kAnswers];
};

__global__ void answer(Talk* talk, std::uint64_t deadline) {
  const std::uint64_t begin = now_ns();
  auto* asked = static_cast<volatile std::uint64_t*>(&talk->asked);
  for (int i = 0; i < kAnswers; ++i) {
    while (*asked <= i && now_ns() - begin < deadline) {
    }
    *static_cast<volatile std::uint64_t*>(&talk->answers[i]) = now_ns();
    __threadfence_system();
  }
}

}  // namespace

std::int64_t gpu_clock_offset(Stream stream) {
  constexpr std::uint64_t kDeadline = 1'000'000'000;
  const std::shared_ptr<std::byte> memory(gpu()->allocate_mapped(sizeof(Talk)),
                                          [](std::byte* p) { gpu()->release_mapped(p); });
  auto* talk = reinterpret_cast<Talk*>(memory.get());
  answer<<<1, 1, 0, stream>>>(talk, kDeadline);
  check_cuda(cudaGetLastError(), "launching a look at the GPU's clock");
  const std::atomic_ref<std::uint64_t> asked(talk->asked);
  std::int64_t offset = 0;
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kAnswers; ++i) {
    const std::atomic_ref<std::uint64_t> answer(talk->answers[i]);
    const std::int64_t begin = Recorder::now();
    asked.store(static_cast<std::uint64_t>(i) + 1);
    while (answer.load() == 0 && Recorder::now() - begin < static_cast<std::int64_t>(kDeadline)) {
    }
    if (answer.load() == 0) break;
    const std::int64_t took = Recorder::now() - begin;
    if (took >= fastest) continue;
    fastest = took;
    offset = begin + took / 2 - static_cast<std::int64_t>(answer.load());
  }
  TASUKI_CUDA(cudaStreamSynchronize, stream);
  if (fastest == std::numeric_limits<std::int64_t>::max())
    throw Error(ErrorKind::system, "the GPU did not answer with its time within a second");
  return offset;
}

}  // namespace tasuki
