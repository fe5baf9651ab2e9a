// Gpu: what Tasuki asks of CUDA's run time, so that only .cu files see CUDA. All calls throw `Error` that names the
// call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tasuki/device.hpp"

namespace tasuki {

/// Names an allocation of one process to others on the same machine.
struct GpuHandle {
  std::array<std::uint8_t, 64> bytes{};
  friend bool operator==(const GpuHandle&, const GpuHandle&) = default;
};

/// See `Fork`.
class GpuFork {
 public:
  virtual ~GpuFork() = default;
  virtual Stream branch(Stream from) = 0;
  virtual void join(Stream into) = 0;
};

/// See `Graph`.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  virtual void launch(Stream stream) = 0;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual int count() const = 0;
  virtual int current() const = 0;
  virtual void select(int ordinal) = 0;
  virtual std::string name(int ordinal) const = 0;  ///< `NVIDIA H200 (GPU-1f3c…)`, the same in every process
  /// True if GPU `ordinal` can add to the memory of the one called `name`, which this process must see too.
  virtual bool adds_to(int ordinal, const std::string& name) const = 0;
  virtual int processors(int ordinal) const = 0;  ///< multiprocessors

  virtual Memory where(const void* p) const = 0;        ///< host for whatever CUDA does not know
  virtual std::byte* allocate(std::int64_t bytes) = 0;  ///< on the current device, zero-filled
  virtual void release(std::byte* p) noexcept = 0;
  virtual std::byte* allocate_mapped(std::int64_t bytes) = 0;  ///< host memory, zero-filled, that the GPU reaches
  virtual void release_mapped(std::byte* p) noexcept = 0;
  virtual void copy(void* dst, const void* src, std::int64_t bytes) = 0;  ///< between any memories; blocks

  /// The handle of the allocation that `p` lies in, and where in it. Empty, or why it cannot be shared.
  virtual std::string share(const void* p, GpuHandle& handle, std::int64_t& offset) = 0;
  virtual std::byte* open(const GpuHandle& handle) = 0;
  virtual void close(std::byte* base) noexcept = 0;
  /// Lets the current device use memory of this process on another.
  virtual void reach(const void* p) = 0;

  virtual bool done(Stream stream) = 0;       ///< true if all work in the stream has ended
  virtual bool capturing(Stream stream) = 0;  ///< true if the stream is being captured into a graph
  virtual std::shared_ptr<GpuFork> fork() = 0;
  /// What `enqueue` puts into the stream, which is not the default stream. Its exceptions are passed on.
  virtual std::shared_ptr<GpuGraph> capture(Stream stream, const std::function<void()>& enqueue) = 0;
};

/// The process's GPUs; nullptr where `why_no_gpu` has something to say.
Gpu* gpu();

/// Where `p` points to: a process that has not used CUDA has no memory on a GPU, and is not made to use it by asking.
Memory memory_of(const void* p);

/// Set at load time by the part that is compiled with nvcc.
struct GpuSupport {
  using Make = Gpu* (*)(std::string& why_not);
  explicit GpuSupport(Make make);
};

}  // namespace tasuki
