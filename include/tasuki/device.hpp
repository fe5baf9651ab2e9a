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

/// Settles which GPU this rank uses and finds out which ranks can store into each other's GPU memory. The GPU is the
/// current CUDA device if the process has chosen one other than the first, else the one of the rank's place on its
/// host (local rank modulo the GPUs seen), which becomes the current device. Returns its ordinal. Collective; throws
/// on every rank if a rank has no GPU, or if two ranks that are threads have the same. Making a field on the device
/// does the same, so call it only to compute on the same GPU before there is a field. Later calls only return the
/// ordinal.
int use_gpu(const Context& context);

/// True once GPU memory has been used in this context: after `use_gpu`, or the first field on the device. Local.
bool uses_gpu(const Context& context);

/// The current CUDA device of this thread; and making another one current. Local; throw where there is no GPU.
int current_gpu();
void select_gpu(int ordinal);

/// Copies bytes between any memories, host or device. Blocks until done, after whatever the default stream has to do.
/// Local. Throws where there is no GPU.
void copy_bytes(void* to, const void* from, std::int64_t bytes);

/// Waits on the host until the work in `stream` is done, as every wait of Tasuki does: throws if an exchange in it has
/// failed, if a rank has died (exchanges that wait for it are ended) or at the context's deadline. Local. Where no GPU
/// is used it returns at once.
void synchronize(const Context& context, Stream stream);

class GpuFork;

/// A second stream on the current GPU, for an exchange that travels while the first computes: `branch`, put the
/// exchange into the stream it returns and the interior's kernel into the first, `join`. Work in the branch goes ahead
/// of other work that is ready. All is local, ordered on the GPU without waiting on the host, and legal while the
/// stream is being captured. Making one throws where there is no GPU.
class Fork {
 public:
  Fork();
  Stream branch(Stream from);  ///< The second stream; what comes in it comes after the work that `from` has so far.
  void join(Stream into);      ///< Later work of `into` comes after the second stream's.

 private:
  std::shared_ptr<GpuFork> parts_;
};

}  // namespace tasuki
