// Measured beside predicted: what explain(true) adds, and predict(Operation), for which plans are gathered.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "operations/plans_of_all.hpp"
#include "operations/state.hpp"
#include "predict/compare.hpp"
#include "session/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

double median_seconds(std::vector<std::int64_t>& ns) {
  const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
  std::nth_element(ns.begin(), middle, ns.end());
  return static_cast<double>(*middle) * 1e-9;
}

Measured medians(const std::vector<EpochTimes>& all, std::size_t commands) {
  std::vector<const EpochTimes*> epochs;
  for (const EpochTimes& times : all)
    if (times.epoch > 0) epochs.push_back(&times);
  Measured measured;
  measured.epochs = static_cast<int>(epochs.size());
  if (epochs.empty()) return measured;
  std::vector<std::int64_t> values;
  const auto median_of = [&](const auto& value) {
    values.clear();
    for (const EpochTimes* times : epochs) values.push_back(value(*times));
    return median_seconds(values);
  };
  measured.epoch = median_of([](const EpochTimes& times) { return times.end - times.start; });
  for (std::size_t i = 0; i < commands; ++i)
    measured.commands.push_back(median_of([i](const EpochTimes& times) { return times.commands[i]; }));
  return measured;
}

}  // namespace

std::string Operation::State::measured() {
  check_alive("explain");
  if (active_)
    throw Error(fmt::format("rank {}: {}: explain with 'measured' while epoch {} is active; wait for it first",
                            context_.rank(), name_, epoch_));
  if (where_ == Memory::device && executor_->recorder() == nullptr)
    throw Error(
        fmt::format("rank {}: {}: explain with 'measured': kernels take times only if TASUKI_TRACE was set when "
                    "the operation was made; set it to a folder",
                    context_.rank(), name_));
  executor_->keep_times();
  engine_->tell();
  const Measured measured = medians(executor_->recorder()->kept(), plan().commands.size());
  if (measured.epochs > 0) return compared(plan(), runtime_of(context_).machine(), measured);
  return "measured: nothing yet; times are kept from now on: run some epochs and ask again\n";
}

Prediction predict(const Operation& operation) {
  Runtime& runtime = runtime_of(operation.context());
  const std::vector<Plan> plans = plans_of_all(runtime, "predict", [&] { return operation.plan(); });
  return predict(plans, runtime.machine());
}

}  // namespace tasuki
