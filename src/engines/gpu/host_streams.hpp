// HostStreams: the streams for epochs that the host starts without giving one.
#pragma once

#include <mutex>
#include <vector>

#include "tasuki/device.hpp"

namespace tasuki {

/// Streams of a GPU that do not wait for each other. Ranks may start operations in orders that differ, and kernels of
/// operations wait for other ranks: so each active epoch needs a stream of which the work begins whatever the others
/// wait for. CUDA gives the streams of a process CUDA_DEVICE_MAX_CONNECTIONS hardware queues, in turn; streams with one
/// queue do wait for each other. So there are only as many as queues, made one after the other.
class HostStreams {
 public:
  /// Those of this process on the current GPU, which has this ordinal.
  static HostStreams& of(int ordinal);

  Stream take();  ///< null if all are taken
  void give_back(Stream stream);
  int size() const { return size_; }

 private:
  HostStreams();
  std::mutex mutex_;
  std::vector<Stream> free_;
  int size_ = 0;
};

}  // namespace tasuki
