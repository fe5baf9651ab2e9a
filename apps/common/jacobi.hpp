// What the apps share besides their equation: the interface of a solver, the way from a command line to a report, and
// Jacobi steps on CPUs. Jacobi steps on GPUs are in gpu.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/options.hpp"
#include "common/report.hpp"
#include "tasuki/tasuki.hpp"

namespace apps {

/// Solves an equation on a grid of ranks. All calls are collective.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual void initialise() = 0;                           ///< The initial values, in cells and halo.
  virtual Timing run(int iterations) = 0;                  ///< Jacobi steps from the values as they are.
  virtual std::optional<Split> split(int iterations) = 0;  ///< Where it can be measured; spoils the values.
  virtual double norm() const = 0;                         ///< Of the last step, over all ranks.
  virtual bool equals_serial(int iterations) const = 0;    ///< Bitwise, after `iterations` from the start.
  virtual const tasuki::Grid& grid() const = 0;
  virtual const tasuki::Halo& halo() const = 0;
};

using MakeSolver = std::unique_ptr<Solver> (*)(const tasuki::Context&, const Options&);

/// What an app is, but for its command line.
struct Equation {
  const char* norm_name = "";
  double flops_per_cell = 0;
  double bytes_per_cell = 0;  ///< of its arrays' elements, each loaded or stored once
  /// Bytes that all of a rank's arrays take in the host's memory.
  std::int64_t (*memory_needed)(const tasuki::Grid& grid, bool on_gpus, bool verify) = nullptr;
  MakeSolver on_cpus = nullptr;
  MakeSolver resident_on_cpus = nullptr;  ///< `--engine kernel`
  MakeSolver on_gpus = nullptr;           ///< null where it was built without CUDA
  MakeSolver resident_on_gpus = nullptr;
  void (*check_norm)(const Options&, Result& result) = nullptr;  ///< sets `norm_wrong`; null: no norm is known
};

/// Solves as the options say and reports. Returns the exit code. Collective.
int solve(const tasuki::Context& context, Options options, const AppInfo& info, const Equation& equation);

/// How the alternating halo of a Jacobi solver is made. `cuts`: HaloOptions::cuts.
tasuki::HaloOptions halo_options(const Options& options, const tasuki::FieldBase& field, bool corners,
                                 const std::vector<std::vector<std::int64_t>>& cuts);

/// Jacobi steps on this rank's CPU of a field with two copies: sweeps and the halo's exchanges, overlapped if the
/// options say so.
class CpuSteps {
 public:
  /// Reads copy 1 - `now` of the field and writes copy `now`, in one box. `first` is true for the first box of a step.
  using Sweep = std::function<void(int now, const tasuki::Box& box, bool first)>;

  /// This rank's part of the last step's norm, and how the ranks' parts become one.
  struct Norm {
    std::function<double()> local;
    tasuki::ReduceOp op = tasuki::ReduceOp::sum;
  };

  /// `halo` is the field's, and alternating. Collective.
  CpuSteps(const Options& options, const tasuki::FieldBase& field, const tasuki::Halo& halo, Sweep sweep, Norm norm);

  void exchange();             ///< By itself, for the start.
  Timing run(int iterations);  ///< Without exchanges if the options say so. Collective.
  /// Of the last step, over all ranks, where the options have it reduced in between.
  std::optional<double> norm() const;

 private:
  void step(Timing& timing);
  void reduce_norm(Timing& timing);

  Options options_;
  tasuki::FieldBase field_;
  tasuki::Halo halo_;
  Sweep sweep_;
  Norm norm_;
  std::vector<double> reduced_{0};  // an element, whose address stays
  std::optional<tasuki::Allreduce> reduction_;
  int unshown_ = 0;  // without exchanges the copies take turns behind the field's back: its swaps belong to the halo
};

}  // namespace apps
