// Gpu: interface to the CUDA runtime, so that only .cu files include CUDA. All functions throw an `Error` that names
// the CUDA call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tasuki/device.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

/// What runs on the GPU has failed, so that CUDA refuses everything that follows. The cause may be elsewhere: the
/// memory of a rank goes when it dies, and a kernel that still uses it fails by that.
class GpuFailure : public Error {
 public:
  explicit GpuFailure(const std::string& text) : Error(ErrorKind::system, text) {}
};

/// Interprocess handle of a GPU allocation: another process of the same machine opens the allocation with it.
struct GpuHandle {
  std::array<std::uint8_t, 64> bytes{};
  friend bool operator==(const GpuHandle&, const GpuHandle&) = default;
};

/// Implements `tasuki::Fork`: a side branch of work of a stream.
class GpuFork {
 public:
  virtual ~GpuFork() = default;
  virtual Stream branch(Stream from) = 0;
  virtual void join(Stream into) = 0;
};

/// Implements `tasuki::Graph`: a captured graph.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  virtual void launch(Stream stream) = 0;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual int count() const = 0;
  virtual int current() const = 0;  ///< ordinal of the calling thread's device
  virtual void select(int ordinal) = 0;
  virtual std::string name(int ordinal) const = 0;  ///< `NVIDIA H200 (GPU-1f3c…)`, the same in every process
  /// Whether GPU `ordinal` can do atomic additions in the memory of the GPU called `name`. False if this process does
  /// not see that GPU.
  virtual bool adds_to(int ordinal, const std::string& name) const = 0;
  virtual int processors(int ordinal) const = 0;  ///< number of multiprocessors

  virtual Memory where(const void* p) const = 0;        ///< `Memory::host` for addresses that CUDA does not know
  virtual std::byte* allocate(std::int64_t bytes) = 0;  ///< on the current device, zero-filled
  virtual void release(std::byte* p) noexcept = 0;
  virtual std::byte* allocate_mapped(std::int64_t bytes) = 0;  ///< pinned host memory, zero-filled, mapped into the GPU
  virtual void release_mapped(std::byte* p) noexcept = 0;
  virtual void copy(void* dst, const void* src, std::int64_t bytes) = 0;  ///< between any memories; blocking

  /// Sets the handle of the allocation that contains `p`, and the offset of `p` in it. Returns an empty text, or the
  /// reason why the allocation cannot be shared.
  virtual std::string share(const void* p, GpuHandle& handle, std::int64_t& offset) = 0;
  /// Maps another process's allocation; returns its first byte.
  virtual std::byte* open(const GpuHandle& handle) = 0;
  virtual void close(std::byte* base) noexcept = 0;
  /// Enables the current device to use `p`, which lies on another device of this process.
  virtual void reach(const void* p) = 0;

  /// True if all work in the stream has ended. Does not begin to use a GPU, which has no work then. Throws
  /// `GpuFailure`.
  virtual bool done(Stream stream) = 0;
  virtual bool capturing(Stream stream) = 0;  ///< true if the stream is being captured into a graph
  /// Ordinal of the device to which the stream belongs: the current one for the default stream.
  virtual int device_of(Stream stream) = 0;
  virtual std::shared_ptr<GpuFork> fork() = 0;
  /// Captures the work that `enqueue` puts into the stream. The stream must not be the default stream. Exceptions of
  /// `enqueue` are rethrown.
  virtual std::shared_ptr<GpuGraph> capture(Stream stream, const std::function<void()>& enqueue) = 0;
};

/// The interface to this process's GPUs; null if there is none, and then `why_no_gpu` says why.
Gpu* gpu();

/// The same if this process has used CUDA; else null, and CUDA is not initialised.
Gpu* used_gpu();

/// The kind of memory that `p` points to. Does not initialise CUDA: a process that has not used CUDA has no GPU memory.
Memory memory_of(const void* p);

/// Registers the implementation (gpu.cu) at load time, in builds with CUDA.
struct GpuSupport {
  using Make = Gpu* (*)(std::string& why_not);
  explicit GpuSupport(Make make);
};

}  // namespace tasuki
