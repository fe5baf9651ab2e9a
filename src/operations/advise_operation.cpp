// advise(Operation): the plans of all ranks are gathered, and the cores that each of them may use.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <vector>

#include "layout/encoding.hpp"
#include "operations/plans_of_all.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"

namespace tasuki {

namespace {

using Cores = std::bitset<CPU_SETSIZE>;

Cores own_cores() {
  cpu_set_t set;
  Cores cores;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (std::size_t c = 0; c < cores.size(); ++c) cores[c] = CPU_ISSET(c, &set);
  return cores;
}

// Cores of the host that has the fewest for its ranks. Where ranks are bound to a core each, none is to spare.
int cores_of_a_host(const Machine& machine, const std::vector<std::string>& told) {
  std::map<int, Cores> together;
  std::map<int, int> ranks;
  bool bound = false;
  for (std::size_t r = 0; r < told.size(); ++r) {
    const Cores own = decoded<Cores>(told[r]);
    bound = bound || own.count() < 2;
    together[machine.ranks[r].host] |= own;
    ++ranks[machine.ranks[r].host];
  }
  int least = CPU_SETSIZE;
  for (const auto& [host, cores] : together)
    least = std::min({least, static_cast<int>(cores.count()), bound ? ranks[host] : CPU_SETSIZE});
  return least;
}

}  // namespace

Advice advise(const Operation& operation, double computation) {
  Runtime& runtime = runtime_of(operation.context());
  Agreement(runtime, "advise").same("computation", fmt::format("{}", computation)).check();
  const std::vector<Plan> plans = plans_of_all(runtime, "advise", [&] { return operation.plan(); });
  Machine machine = runtime.machine;
  machine.cores =
      cores_of_a_host(machine, gather_texts(runtime, encoded(own_cores()), "advise: gathering the cores of all ranks"));
  return advise(plans, machine, computation);
}

}  // namespace tasuki
