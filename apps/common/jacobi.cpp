// See jacobi.hpp.
#include "common/jacobi.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/gather.hpp"

namespace apps {

namespace {

void check_resident(const Options& options, const AppInfo& info, MakeSolver make) {
  if (make == nullptr)
    throw tasuki::Error(fmt::format("--engine kernel: {} has no kernel that exchanges by itself", info.name));
  if (!options.communicate)
    throw tasuki::Error("--engine kernel: it cannot leave the exchange out; take away --no-communication");
}

}  // namespace

int solve(const tasuki::Context& context, Options options, const AppInfo& info, const Equation& equation) {
  const bool on_gpus = settle_device(context, options);
  {
    const tasuki::Grid grid(context, options.extents, options.grid());
    require_memory(context, equation.memory_needed(grid, on_gpus, options.verify),
                   fmt::format("{} {}{}", info.name, options.size, options.verify ? " with --verify" : ""));
  }
  const bool resident = options.engine == "kernel";
  if (resident) check_resident(options, info, on_gpus ? equation.resident_on_gpus : equation.resident_on_cpus);
  const MakeSolver make = on_gpus ? (resident ? equation.resident_on_gpus : equation.on_gpus)
                                  : (resident ? equation.resident_on_cpus : equation.on_cpus);
  const auto solver = make(context, options);
  const auto from_start = [&solver](int iterations) {
    solver->initialise();
    return solver->run(iterations);
  };
  Result result;
  describe_gpus(context, on_gpus, result);
  result.iterations = choose_iterations(context, options, from_start);
  reduce_times(context, from_start(result.iterations), result);
  result.norm_name = equation.norm_name;
  result.norm = solver->norm();
  result.flops_per_iteration = equation.flops_per_cell;
  for (const auto extent : options.extents) result.flops_per_iteration *= static_cast<double>(extent - 2);
  if (options.communicate && equation.check_norm != nullptr) equation.check_norm(options, result);
  if (options.verify) result.verified = solver->equals_serial(result.iterations);
  if (const auto split = solver->split(result.iterations)) reduce_split(context, *split, result);
  return report(solver->grid(), info.name, options, solver->halo(), result);
}

CpuSteps::CpuSteps(const Options& options, const tasuki::FieldBase& field, const tasuki::Halo& halo, Sweep sweep)
    : options_(options), field_(field), halo_(halo), sweep_(std::move(sweep)) {}

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
    progress.done(n + 1);
  }
  timing.total = now() - begin;
  return timing;
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
