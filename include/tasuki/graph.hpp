// Graph: work of a stream that is captured once and replayed often, which spares the host its launches.
#pragma once

#include <functional>
#include <memory>

#include "tasuki/device.hpp"

namespace tasuki {

class GpuGraph;

/// What a function puts into a stream, ready to be launched as a whole. All is local. Unlike CUDA's own graphs by
/// default, this one keeps the priorities of streams: a `Fork`'s branch goes ahead in it as it does without.
///
/// The operations, the memory and the `Fork`s that the work uses must be there while it is replayed; copies refer to
/// the same graph.
class Graph {
 public:
  /// Captures what `enqueue` puts into `stream`, and into streams that branch off from it and join it again (`Fork`).
  /// Nothing of that runs before `launch`. `stream` is any but the default stream, which CUDA cannot capture.
  ///
  /// In `enqueue`, `run(stream)`, `start(stream)` and `wait(stream)` of operations are as always: each replay is an
  /// epoch more, counted on the GPU. What the host does there (`swap`, choosing pointers) is done now and not at
  /// replays, so enqueue as many iterations as bring everything back to where it began: an even number with fields of
  /// two copies that are swapped. Calls that wait (`synchronize`, operations without a stream), allocate device memory
  /// or load kernels for the first time cannot be captured.
  ///
  /// An exception of `enqueue` ends the capture and is passed on; what was enqueued until then will not run, while
  /// swaps stay done. Throws `Error` where there is no GPU, if `stream` is the default stream or is being captured
  /// already, and if something in `enqueue` could not be captured.
  Graph(Stream stream, const std::function<void()>& enqueue);

  /// Puts the work into `stream`, which need not be the one it was captured in, on the same GPU. If an exchange in it
  /// fails, `synchronize` says so.
  void launch(Stream stream) const;

 private:
  std::shared_ptr<GpuGraph> captured_;
};

}  // namespace tasuki
