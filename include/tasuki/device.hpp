// Device: where memory is, and the streams that order the work on a GPU. Needs no CUDA header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tasuki/context.hpp"
#include "tasuki/machine.hpp"

struct CUstream_st;

namespace tasuki {

/// What CUDA calls `cudaStream_t`; nullptr is the default stream.
using Stream = CUstream_st*;

/// Empty if this process can use a GPU; else what is missing (no CUDA in this build, no driver, no device). Local.
std::string why_no_gpu();

/// Settles which GPU this rank uses and finds out which ranks can store into each other's GPU memory. If the process
/// has made another CUDA device than the first one current, it is that one. Else it is number (r modulo the GPUs seen)
/// for the r-th rank of the host, and becomes the current device. Returns its ordinal. Making a field on the device
/// does the same, so a call is only needed to use the GPU before there is a field. Later calls only return the ordinal.
/// Collective; throws on every rank if a rank has no GPU, or if two ranks that are threads have the same.
int use_gpu(const Context& context);

/// True once GPU memory has been used in this context: after `use_gpu`, or the first field on the device. Local.
bool uses_gpu(const Context& context);

/// The current CUDA device of this thread; and making another one current. Local; throw where there is no GPU.
int current_gpu();
void select_gpu(int ordinal);

/// Copies bytes between any memories, host or device, after the work that the default stream already has, and returns
/// when that is done. Local. Throws where there is no GPU.
void copy_bytes(void* to, const void* from, std::int64_t bytes);

/// Waits on the host until the work in `stream` is done, whichever contexts put it there. Throws if an operation of
/// this process on the stream's GPU has failed, of any context, as long as that operation exists; if a rank of this
/// context that is on this host has died (exchanges that wait for it are ended); or at the context's deadline. Local.
/// Returns at once where this process has used no GPU.
void synchronize(const Context& context, Stream stream);

class GpuFork;

/// A second stream on the current GPU, so that an exchange overlaps with computation. Call `branch`, put the exchange
/// into the stream that it returns and the interior's kernel into the first stream, then call `join`. The second stream
/// has a high priority: of blocks that are ready to run, its own come first. All calls are local, order work on the GPU
/// without waiting on the host, and are legal while the stream is being captured. Making one throws where there is no
/// GPU.
class Fork {
 public:
  Fork();
  Stream branch(Stream from);  ///< Returns the second stream; its later work runs after the present work of `from`.
  void join(Stream into);      ///< Later work of `into` runs after the present work of the second stream.

 private:
  std::shared_ptr<GpuFork> parts_;
};

}  // namespace tasuki
