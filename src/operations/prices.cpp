// The machine as planning sees it: GPUs, transports, prices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "machine/derived.hpp"
#include "operations/state.hpp"
#include "paths/path.hpp"
#include "session/gpus.hpp"
#include "transports/transport.hpp"

namespace tasuki {

namespace {

CalibrationHook::Calibrate& hook() {
  static CalibrationHook::Calibrate calibrate = nullptr;
  return calibrate;
}

// Whether any rank could take the path with rank 0.
bool can_be_used(const Machine& machine, const Path& path) {
  if (machine.unusable.contains(path.name)) return false;
  for (int rank = 0; rank < machine.size(); ++rank)
    if (path.joins(machine, 0, rank)) return true;
  return false;
}

}  // namespace

CalibrationHook::CalibrationHook(Calibrate calibrate) {
  hook() = calibrate;
}

void see_usable_paths(Runtime& runtime) {
  auto unusable = runtime.transports->unusable();
  if (unusable == runtime.machine().unusable) return;  // a machine of many ranks is not copied for nothing
  runtime.replace_machine(with_unusable(runtime.machine(), std::move(unusable)));
}

const Machine& machine_for(const Context& context, const std::string& wanted) {
  Runtime& runtime = runtime_of(context);
  if (runtime.all_have_findings && !runtime.pricing) runtime.findings->settle(runtime);
  const auto look = [&] {
    if (runtime.gpus) runtime.transports->prepare(runtime, wanted);
    see_usable_paths(runtime);
  };
  look();
  const Machine& machine = runtime.machine();
  std::string usable;
  for (const Path& path : all_paths())
    if (can_be_used(machine, path)) usable += path.name + ' ';
  // The transfers that measure come here too, and have it seen to by whoever called them.
  if (usable == runtime.priced || runtime.pricing || hook() == nullptr) return machine;
  runtime.pricing = true;
  try {
    hook()(context);
  } catch (...) {
    runtime.pricing = false;
    throw;
  }
  runtime.pricing = false;
  runtime.priced = usable;
  look();  // again: each transfer wanted its own
  return machine;
}

std::string engine_named(const Runtime& runtime, const std::string& option) {
  if (option != "auto") return option;
  return runtime.settings().engine != "auto" ? runtime.settings().engine : "inline";
}

void OperationMachine::leave_to_engine(const std::string& engine) {
  if (!engine_is_threaded(engine) || runtime_.topology().threads || runtime_.thread_level() >= MPI_THREAD_MULTIPLE)
    return;
  own_ = without_path(**this, "mpi",
                      "engine '" + engine +
                          "' with path 'mpi' needs MPI_THREAD_MULTIPLE, but MPI was started with less; use engine "
                          "'inline' or start MPI with MPI_Init_thread");
}

void OperationMachine::connect(int peer, const std::string& wanted) {
  own_ = with_unusable(**this, runtime_.transports->prepare_pair(runtime_, peer, wanted));
}

const Machine& OperationMachine::operator*() const {
  return own_ ? *own_ : runtime_.machine();
}

Machine machine_of(const Context& context) {
  return machine_for(context);
}

}  // namespace tasuki
