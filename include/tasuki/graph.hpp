// Graph: work of a stream that is captured once and launched often as a whole, so the host need not launch every
// kernel.
#pragma once

#include <functional>
#include <memory>

#include "tasuki/device.hpp"

namespace tasuki {

class GpuGraph;

/// What a function puts into a stream, ready to be launched as a whole. A handle: a second handle refers to the same
/// graph. All calls are local. Unlike CUDA's own graphs by default, this one keeps the priorities of streams, so a
/// `Fork`'s branch has its high priority in the graph, too.
///
/// The operations, the memory and the `Fork`s that the work uses must exist as long as it is launched.
class Graph {
 public:
  /// Captures what `enqueue` puts into `stream`, and into streams that branch off from it and join it again (`Fork`).
  /// Nothing of that runs before `launch`. `stream` is any but the default stream, which CUDA cannot capture.
  ///
  /// `enqueue` calls `run(stream)`, `start(stream)` and `wait(stream)` of operations as usual; each launch of the graph
  /// is a further epoch of them, counted on the GPU. What the host does in `enqueue` (`swap`, choosing pointers)
  /// happens now and not at launches. So enqueue a number of iterations after which the same copies are current again:
  /// an even number for fields with two copies that are swapped once an iteration. Calls that wait (`synchronize`,
  /// operations without a stream), allocate device memory or load kernels for the first time cannot be captured.
  ///
  /// An exception of `enqueue` ends the capture and is passed on; what was enqueued until then will not run, but swaps
  /// are not undone. Throws `Error` where there is no GPU, if `stream` is the default stream or is being captured
  /// already, and if something in `enqueue` could not be captured.
  Graph(Stream stream, const std::function<void()>& enqueue);

  /// Puts the work into `stream`, which is on the same GPU but may be another stream than the captured one. If an
  /// exchange in it fails, `synchronize` throws.
  void launch(Stream stream) const;

 private:
  std::shared_ptr<GpuGraph> captured_;
};

}  // namespace tasuki
