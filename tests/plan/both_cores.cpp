// Which cores a path keeps busy: what a peer unpacks leaves it no time to fetch other pieces meanwhile.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "machine/profile.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

PathCost of(double bandwidth) {
  return cost_of({{"latency", 0.2e-6}, {"bandwidth", bandwidth}, {"per_run", 1e-9}});
}

// The paths of a broadcast of 3 MiB in three parts from rank 0 to rank 1.
std::set<std::string> paths_of(double put, double pull, double eager, double read, bool shared) {
  Machine machine = Machine::uniform(2, 2, 0);
  machine.costs["self"] = of(100e9);
  machine.costs["shared:put"] = of(put);
  machine.costs["shared:pull"] = of(pull);
  machine.costs["shared:eager"] = of(eager);
  machine.costs["shared:read"] = of(read);
  machine.costs["mpi"] = of(1e9);
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.type = DType::u8;
  shape.count = 3 << 20;
  shape.shared = shared;
  shape.algorithm = "trees";
  shape.trees = 3;
  shape.chunk = 1 << 20;
  const Planned planned = plan(machine, shape);
  CHECK(verify(planned.plans()).ok());
  const Plan root = planned.plan(0);
  std::set<std::string> names;
  for (const Command& command : root.commands)
    if (command.peer == 1) names.insert(root.paths[static_cast<std::size_t>(command.path)]);
  return names;
}

}  // namespace

TEST_CASE("pieces go at the same time by stores of one core and loads of the other, but not beside what both move") {
  using Names = std::set<std::string>;
  CHECK(paths_of(10e9, 9e9, 5e9, 5e9, true) == Names{"shared:pull", "shared:put"});
  // Also where a path that keeps both cores busy is the quickest for each piece alone.
  CHECK(paths_of(10e9, 9e9, 12e9, 5e9, true) == Names{"shared:pull", "shared:put"});
  CHECK(paths_of(10e9, 9e9, 12e9, 9e9, false) == Names{"shared:eager"});
  CHECK(paths_of(10e9, 9e9, 9e9, 12e9, false) == Names{"shared:read"});
}
