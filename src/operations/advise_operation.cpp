// advise(Operation): of the plans of all ranks, which are gathered.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "operations/plans_of_all.hpp"
#include "operations/state.hpp"

namespace tasuki {

namespace {

// Cores of the host that has the fewest for its ranks. Where ranks are bound to a core each, none is to spare.
int cores_of_a_host(const std::vector<Process>& processes) {
  const bool bound = std::ranges::any_of(processes, [](const Process& one) { return one.own_cores < 2; });
  int least = std::numeric_limits<int>::max();
  for (const Process& one : processes) {
    least = std::min(least, one.cores);
    if (bound) least = std::min(least, static_cast<int>(std::ranges::count(processes, one.host, &Process::host)));
  }
  return least;
}

}  // namespace

Advice advise(const Operation& operation, double computation) {
  Runtime& runtime = runtime_of(operation.context());
  Agreement(runtime, "advise").same("computation", fmt::format("{}", computation)).check();
  const std::vector<Plan> plans = plans_of_all(runtime, "advise", [&] { return operation.plan(); });
  Machine machine = runtime.machine();
  machine.cores = cores_of_a_host(runtime.topology().processes);
  return advise(plans, machine, computation);
}

}  // namespace tasuki
