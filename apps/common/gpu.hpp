// Repeated work on this rank's GPU: a stream of its own, CUDA graphs, and the time that it takes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tasuki/context.hpp"
#include "tasuki/device.hpp"

namespace apps {

/// The GPUs of all ranks: how many different ones, and what the first rank's is called. Collective.
struct Gpus {
  int number = 0;
  std::string name;
};
Gpus gpus_of(const tasuki::Context& context);

class GpuQueue {
 public:
  /// Selects the rank's GPU. With `graphs`, repeated work is captured once and replayed. Collective.
  GpuQueue(const tasuki::Context& context, bool graphs);

  tasuki::Stream stream() const;
  void finish() const;  ///< Waits until the stream's work is done. Throws as `tasuki::synchronize` does.

  /// Seconds from a common start of all ranks until this rank's GPU has done `count` times what `enqueue` puts into the
  /// stream. With graphs `enqueue` must put in the same again after two calls, as it does where two copies take turns.
  /// Collective.
  double time(int count, const std::function<void()>& enqueue);

 private:
  tasuki::Context context_;
  std::shared_ptr<CUstream_st> stream_;
  bool graphs_;
};

}  // namespace apps
