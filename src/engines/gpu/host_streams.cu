// HostStreams: see host_streams.hpp.
#include "engines/gpu/host_streams.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

// As CUDA reads it.
int queues() {
  constexpr int kDefault = 8;
  constexpr int kMost = 32;
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted < 1 ? kDefault : std::min(wanted, kMost);
}

}  // namespace

HostStreams::HostStreams() : size_(queues()) {
  int least = 0;
  int greatest = 0;
  TASUKI_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
  for (int i = 0; i < size_; ++i) {
    cudaStream_t stream = nullptr;
    TASUKI_CUDA(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking, greatest);
    free_.push_back(stream);
  }
}

HostStreams& HostStreams::of(int ordinal) {
  static auto* mutex = new std::mutex;  // never destroyed, as the streams: operations may outlast static objects
  static auto* all = new std::map<int, HostStreams*>;
  const std::lock_guard lock(*mutex);
  auto& one = (*all)[ordinal];
  if (one == nullptr) one = new HostStreams;
  return *one;
}

Stream HostStreams::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  const Stream stream = free_.back();
  free_.pop_back();
  return stream;
}

void HostStreams::give_back(Stream stream) {
  const std::lock_guard lock(mutex_);
  free_.push_back(stream);  // within the room that it had
}

}  // namespace tasuki
