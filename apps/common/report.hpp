// What the apps measure and how they say it: a small table for people, JSON for programs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/options.hpp"
#include "tasuki/operation.hpp"

namespace apps {

/// Seconds since some moment.
double now();

/// Seconds of this rank in one run; what is neither computation nor the norm's reduction is spent in the halo's start
/// and wait.
struct Timing {
  double total = 0;
  double compute = 0;
  double norm = 0;
};

/// Seconds of one iteration by stage, each on the rank for which it is longest.
struct Stages {
  double compute = 0;
  double exchange = 0;  ///< what of it is not hidden
  double norm = 0;
};

/// Seconds of one iteration, on the rank for which they are longest.
struct Split {
  double compute = 0;   ///< with the exchange left out
  double exchange = 0;  ///< with the computation left out
};

struct Result {
  int iterations = 0;
  int gpus = 0;  ///< different ones; 0: computed on the CPU
  std::string gpu_name;
  std::string engine_why;  ///< if it was chosen here
  std::optional<Split> split;
  std::optional<Stages> stages;  ///< on CPUs, where the host can tell them apart
  double seconds_per_iteration = 0;
  double communication_share = 0;  ///< of the time, on the rank that communicates longest
  double flops_per_iteration = 0;
  double bytes_per_iteration = 0;  ///< that a cell must load and store once
  std::string norm_name;           ///< what the app calls its measure of convergence
  double norm = 0;
  std::string norm_remark;
  bool norm_wrong = false;       ///< known to be another value
  std::optional<bool> verified;  ///< bitwise equal to the serial run; empty: not asked
};

/// Tells on stderr, on rank 0 and with `--progress`, how many iterations are done: about a hundred lines a run.
class Progress {
 public:
  Progress(const tasuki::Context& context, const Options& options, int total)
      : step_(total / 100 + 1), total_(total), next_(options.progress && context.is_root() ? step_ : total + 1) {}
  void done(int iterations) {
    if (iterations >= next_) say(iterations);
  }

 private:
  void say(int iterations);
  int step_;
  int total_;
  int next_;
};

/// Iterations to run: as given, 3 for `--verify`, else as many as take about 3 seconds, for which `run(n)` is tried.
/// Collective; the same on all ranks.
int choose_iterations(const tasuki::Context& context, const Options& options, const std::function<Timing(int)>& run);

/// Fills the times of `result`. Collective.
void reduce_times(const tasuki::Context& context, const Timing& timing, Result& result);

/// Fills in which GPUs are used, if any. Collective.
void describe_gpus(const tasuki::Context& context, bool on_gpus, Result& result);

/// Fills the split of `result`, whose times are known, and its share of communication: what is not hidden. Collective.
void reduce_split(const tasuki::Context& context, const Split& split, Result& result);

/// Prints and writes what is asked for, on rank 0, and returns the exit code: 1 if a check failed.
int report(const tasuki::Grid& grid, const std::string& app, const Options& options, const tasuki::Operation& halo,
           const Result& result);

}  // namespace apps
