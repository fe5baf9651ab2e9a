// HostRing: the host's side of the ring by which kernels ask the process's progress thread
// (tasuki/kernel/impl/proxy.cuh).
#pragma once

#include <cstddef>
#include <memory>

#include "tasuki/kernel.cuh"

namespace tasuki {

class HostRing {
 public:
  /// For requests of which so many wait in the ring, and so many have not ended: both are powers of two. Throws `Error`
  /// if there is no memory.
  HostRing(bool on_gpu, device::Word slots, device::Word places);

  /// What kernels get.
  const device::Proxy& device() const { return proxy_; }

  struct Asked {
    device::Word number = 0;
    device::detail::HostRequest request{};
  };
  /// Takes the oldest request out of the ring; false if there is none. By one thread at a time, as `answer`.
  bool next(Asked& asked);
  /// What has been stored before may be read by the kernel that sees the answer.
  void answer(const Asked& asked, device::Word answer);

 private:
  device::Proxy proxy_{};
  device::Word taken_ = 0;  // requests
  std::shared_ptr<std::byte> shared_;
  std::shared_ptr<std::byte> kernels_;
};

/// Zero-filled memory that a kernel and the host see: pinned, if kernels run on a GPU.
std::shared_ptr<std::byte> allocate_for_host(bool on_gpu, std::size_t bytes);
/// Zero-filled memory where kernels run.
std::shared_ptr<std::byte> allocate_for_kernels(bool on_gpu, std::size_t bytes);

}  // namespace tasuki
