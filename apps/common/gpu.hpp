// Repeated work on this rank's GPU: a stream of its own, CUDA graphs, the time that it takes; and Jacobi steps as such
// work.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/options.hpp"
#include "common/report.hpp"
#include "tasuki/tasuki.hpp"

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

/// Jacobi steps of a field with two copies: sweeps and the halo's exchanges. If the exchange is to overlap, the cells
/// at the sides go ahead in a second stream, then the exchange that needs them; the interior fills what is left of the
/// GPU.
class GpuSteps {
 public:
  /// Puts a sweep into `stream` that reads copy 1 - `now` of the field and writes copy `now`: of the cells at the sides
  /// or of the rest, which without overlap are all.
  using Sweep = std::function<void(bool sides, int now, tasuki::Stream stream)>;

  /// `halo` is the field's, and alternating. Collective.
  GpuSteps(const tasuki::Context& context, const Options& options, const tasuki::FieldBase& field,
           const tasuki::Halo& halo, Sweep sweep);

  std::vector<tasuki::Box> sides() const;  ///< The cells that go ahead: without overlap none.
  tasuki::Box rest() const;                ///< The others.
  tasuki::Stream stream() const { return queue_.stream(); }
  void finish() const { queue_.finish(); }
  void exchange();                             ///< By itself, for the start.
  Timing run(int iterations);                  ///< Without exchanges if the options say so.
  std::optional<Split> split(int iterations);  ///< The two parts of a step by themselves; spoils the field.

 private:
  double time(int iterations, bool compute, bool exchange);
  void step(bool compute, bool exchange);

  tasuki::Context context_;
  Options options_;
  tasuki::FieldBase field_;
  tasuki::Halo halo_;
  Sweep sweep_;
  GpuQueue queue_;
  tasuki::Fork fork_;
  bool exchanges_;  // false on a rank without neighbours
  bool overlaps_;
  int unshown_ = 0;  // without exchanges the copies take turns behind the field's back: its swaps belong to the halo
};

}  // namespace apps
