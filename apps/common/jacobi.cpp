// See jacobi.hpp.
#include "common/jacobi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/gather.hpp"

namespace apps {

namespace {

MakeSolver maker_of(const Equation& equation, bool on_gpus, bool resident) {
  if (on_gpus) return resident ? equation.resident_on_gpus : equation.on_gpus;
  return resident ? equation.resident_on_cpus : equation.on_cpus;
}

// Seconds of an iteration, on the rank for which it is longest.
double try_out(const tasuki::Context& context, Solver& solver) {
  const auto longest = [&](int iterations) {
    solver.initialise();
    const std::vector<double> all = context.allgather(solver.run(iterations).total);
    return *std::max_element(all.begin(), all.end()) / iterations;
  };
  constexpr int kWarmUp = 10;
  constexpr double kSeconds = 0.05;
  return longest(std::clamp(static_cast<int>(kSeconds / longest(kWarmUp)), kWarmUp, 10000));
}

// The engine of GPUs that is faster here, graph or kernel, and why. Another one must be faster by more than trials
// differ, for a graph leaves the GPU to others between iterations.
std::string faster_engine(const tasuki::Context& context, Options options, const Equation& equation, std::string& why) {
  constexpr double kGain = 0.98;
  if (!options.communicate) return "graph";
  double seconds[2] = {};
  for (const bool resident : {false, true}) {
    options.engine = resident ? "kernel" : "graph";
    std::unique_ptr<Solver> solver;
    std::string failed;
    try {
      solver = maker_of(equation, true, resident)(context, options);
      solver->initialise();
    } catch (const tasuki::Error& error) {
      if (!resident) throw;
      failed = error.what();
    }
    const std::vector<bool> able = context.allgather(failed.empty());
    const auto unable = std::find(able.begin(), able.end(), false) - able.begin();
    if (unable < context.size()) {
      why = fmt::format("graph; no kernel can run this{}{}", failed.empty() ? "" : ": ", failed);
      return "graph";
    }
    seconds[resident ? 1 : 0] = try_out(context, *solver);
  }
  why = fmt::format("kernel {:.2f} us an iteration, graph {:.2f} us", seconds[1] * 1e6, seconds[0] * 1e6);
  return seconds[1] < kGain * seconds[0] ? "kernel" : "graph";
}

}  // namespace

int solve(const tasuki::Context& context, Options options, const AppInfo& info, const Equation& equation) {
  const bool on_gpus = settle_device(context, options);
  {
    const tasuki::Grid grid(context, options.extents, options.grid());
    require_memory(context, equation.memory_needed(grid, on_gpus, options.verify),
                   fmt::format("{} {}{}", info.name, options.size, options.verify ? " with --verify" : ""));
  }
  Result result;
  if (on_gpus && options.engine == "auto")
    options.engine = faster_engine(context, options, equation, result.engine_why);
  const bool resident = options.engine == "kernel";
  if (resident && !options.communicate)
    throw tasuki::Error("--engine kernel: it cannot leave the exchange out; take away --no-communication");
  if (options.norm_every > 0 && (on_gpus || resident))
    throw tasuki::Error(
        "--norm-every: GPUs and kernels reduce the norm once, at the end; add --device cpu --engine inline");
  const auto solver = maker_of(equation, on_gpus, resident)(context, options);
  const auto from_start = [&solver](int iterations) {
    solver->initialise();
    return solver->run(iterations);
  };
  describe_gpus(context, on_gpus, result);
  if (!on_gpus && !resident) result.stages.emplace();
  result.iterations = choose_iterations(context, options, from_start);
  reduce_times(context, from_start(result.iterations), result);
  result.norm_name = equation.norm_name;
  result.norm = solver->norm();
  result.flops_per_iteration = equation.flops_per_cell;
  result.bytes_per_iteration = equation.bytes_per_cell;
  for (const auto extent : options.extents) {
    result.flops_per_iteration *= static_cast<double>(extent - 2);
    result.bytes_per_iteration *= static_cast<double>(extent - 2);
  }
  if (options.communicate && equation.check_norm != nullptr) equation.check_norm(options, result);
  if (options.verify) result.verified = solver->equals_serial(result.iterations);
  if (const auto split = solver->split(result.iterations)) reduce_split(context, *split, result);
  return report(solver->grid(), info.name, options, solver->halo(), result);
}

tasuki::HaloOptions halo_options(const Options& options, const tasuki::FieldBase& field, bool corners,
                                 const std::vector<std::vector<std::int64_t>>& cuts) {
  const bool engine_is_free = field.memory() == tasuki::Memory::device || options.engine == "kernel";
  tasuki::HaloOptions how;
  how.path = options.path;
  how.engine = engine_is_free ? "auto" : options.engine;
  how.blocks = options.overlap ? kBlocksBeside : 0;
  how.corners = corners;
  how.alternating = true;  // every iteration swaps the copies once
  how.cuts = cuts;
  return how;
}

CpuSteps::CpuSteps(const Options& options, const tasuki::FieldBase& field, const tasuki::Halo& halo, Sweep sweep,
                   Norm norm)
    : options_(options), field_(field), halo_(halo), sweep_(std::move(sweep)), norm_(std::move(norm)) {
  if (options_.norm_every > 0)
    reduction_.emplace(field.grid().context(), tasuki::in_place, reduced_.data(), 1, tasuki::DType::f64, norm_.op);
}

void CpuSteps::exchange() {
  halo_.start();
  halo_.wait();
}

Timing CpuSteps::run(int iterations) {
  const tasuki::Context& context = field_.grid().context();
  Timing timing;
  Progress progress(context, options_, iterations);
  context.barrier();
  const double begin = now();
  for (int n = 0; n < iterations; ++n) {
    step(timing);
    if (reduction_ && ((n + 1) % options_.norm_every == 0 || n + 1 == iterations)) reduce_norm(timing);
    progress.done(n + 1);
  }
  timing.total = now() - begin;
  return timing;
}

std::optional<double> CpuSteps::norm() const {
  return reduction_ ? std::optional(reduced_.front()) : std::nullopt;
}

void CpuSteps::reduce_norm(Timing& timing) {
  const double since = now();
  reduced_.front() = norm_.local();
  reduction_->start();
  reduction_->wait();
  timing.norm += now() - since;
}

void CpuSteps::step(Timing& timing) {
  if (options_.communicate) field_.swap();  // from here on `now` is the copy to compute
  const int computed = options_.communicate ? field_.current() : (unshown_ = 1 - unshown_);
  bool first = true;
  const auto compute = [&](const tasuki::Box& box) {
    const double since = now();
    sweep_(computed, box, std::exchange(first, false));
    timing.compute += now() - since;
  };
  if (options_.communicate && options_.overlap) {
    tasuki::overlap(halo_, field_, 1, compute);
    return;
  }
  compute(field_.local_owned());
  if (options_.communicate) exchange();
}

}  // namespace apps
