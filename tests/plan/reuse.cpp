// What a program loses later, when it writes what a path has sent and reads what has come, decides between paths of
// halos and transfers. It is no part of what an operation is predicted to take, and collectives are chosen without it.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "machine/profile.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

CostSection prices(double bandwidth) {
  return {{"latency", 0.2e-6}, {"bandwidth", bandwidth}, {"per_run", 1e-9}};
}

// `shared:pull` is the fastest path. Of pieces of 32 KiB programs lose 10 us to it, of 1 MiB nothing.
Machine machine_of(bool reuse) {
  Machine machine = Machine::uniform(2, 2, 0);
  machine.costs["self"] = cost_of(prices(40e9));
  machine.costs["shared:eager"] = cost_of(prices(9e9));
  machine.costs["mpi"] = cost_of(prices(2e9));
  CostSection pull = prices(14e9);
  if (reuse) {
    pull[sized_reuse("", 32 << 10)] = 10e-6;
    pull[sized_reuse("", 1 << 20)] = 1e-12;
  }
  machine.costs["shared:pull"] = cost_of(pull);
  machine.unusable = {{"shared:put", "not here"}, {"shared:read", "not here"}};
  return machine;
}

template <class Shape>
std::set<std::string> paths_of(const Machine& machine, const Shape& shape) {
  const Planned planned = plan(machine, shape);
  CHECK(verify(planned.plans()).ok());
  std::set<std::string> names;
  const Plan first = planned.plan(0);
  for (const Command& command : first.commands)
    if (command.peer == 1) names.insert(first.paths[static_cast<std::size_t>(command.path)]);
  return names;
}

TransferShape transfer_of(const Layout& layout, const std::string& path = "auto") {
  TransferShape shape;
  shape.from = 0;
  shape.to = 1;
  shape.src = layout;
  shape.dst = layout;
  shape.path = path;
  return shape;
}

// One piece each way, of 64 x 64 numbers.
HaloShape halo() {
  HaloShape shape;
  shape.extents = {128, 64, 64};
  shape.grid.split = {2, 1, 1};
  FieldShape& field = shape.fields.emplace_back();
  field.shadow = Width({1, 0, 0}, {1, 0, 0});
  field.width = field.shadow;
  return shape;
}

}  // namespace

using Names = std::set<std::string>;

TEST_CASE("a halo takes the path that costs least together with what the program loses later") {
  CHECK(paths_of(machine_of(false), halo()) == Names{"shared:pull"});
  CHECK(paths_of(machine_of(true), halo()) == Names{"shared:eager"});
}

TEST_CASE("the loss is that of the size, and not counted where single elements lie in cache lines") {
  const Machine machine = machine_of(true);
  CHECK(paths_of(machine, transfer_of(Layout::bytes(32 << 10))) == Names{"shared:eager"});
  CHECK(paths_of(machine, transfer_of(Layout::bytes(4 << 20))) == Names{"shared:pull"});
  const Layout elements = Layout::hvector(4096, 1, 4096, Layout::bytes(8));
  CHECK(paths_of(machine, transfer_of(elements)) == paths_of(machine_of(false), transfer_of(elements)));
}

TEST_CASE("neither predictions nor collectives count it") {
  const TransferShape pull = transfer_of(Layout::bytes(32 << 10), "shared:pull");
  const auto seconds = [&](const Machine& machine) { return predict(plan(machine, pull).plans(), machine).seconds; };
  CHECK(seconds(machine_of(true)) == seconds(machine_of(false)));
  CollectiveShape shape;
  shape.kind = CollectiveKind::alltoall;
  shape.count = 4096;
  CHECK(to_json(plan(machine_of(true), shape).plan(0)) == to_json(plan(machine_of(false), shape).plan(0)));
}

TEST_CASE("the table says what a path costs later") {
  const std::string table = plan(machine_of(true), transfer_of(Layout::bytes(32 << 10))).explain(0);
  CAPTURE(table);
  CHECK(table.find("shared:pull 0.79 (later 2.50)") != std::string::npos);
}
