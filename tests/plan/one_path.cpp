// One path for all pieces: what a collective is given is no slower, by the prices, than with any one path forced. And
// what a rank's core pays for lines that another core has touched.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "machine/profile.hpp"
#include "tasuki/distribution.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

PathCost of(double latency, double bandwidth) {
  return cost_of({{"latency", latency}, {"bandwidth", bandwidth}, {"per_run", 1e-9}});
}

// About what two cores that share a cache do.
Machine machine_of(int ranks) {
  Machine machine = Machine::uniform(ranks, ranks, 0);
  machine.costs["self"] = of(0.05e-6, 40e9);
  machine.costs["shared:put"] = of(0.33e-6, 20e9);
  machine.costs["shared:pull"] = of(0.34e-6, 17e9);
  machine.costs["shared:eager"] = of(0.22e-6, 9e9);
  machine.costs["shared:read"] = of(1.1e-6, 12e9);
  machine.costs["mpi"] = of(0.7e-6, 7e9);
  return machine;
}

CollectiveShape shape_of(CollectiveKind kind, std::int64_t count, bool shared, const std::string& path,
                         const std::string& algorithm = "auto") {
  CollectiveShape shape;
  shape.kind = kind;
  shape.type = DType::f64;
  shape.count = count;
  shape.shared = shared;
  shape.path = path;
  shape.algorithm = algorithm;
  return shape;
}

// Empty: the path cannot carry it.
std::optional<double> seconds(const Machine& machine, const CollectiveShape& shape) {
  try {
    const Planned planned = plan(machine, shape);
    CHECK(verify(planned.plans()).ok());
    return predict(planned.plans(), machine).seconds;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

TEST_CASE("no collective is given paths that one path for all pieces would beat") {
  constexpr double kTie =
      1.22;  // a simpler algorithm may take a tenth longer, and so may a path that is easier on caches
  for (const int ranks : {2, 3}) {
    const Machine machine = machine_of(ranks);
    for (const CollectiveKind kind :
         {CollectiveKind::reduce, CollectiveKind::allreduce, CollectiveKind::reduce_scatter, CollectiveKind::scan,
          CollectiveKind::exscan, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::allgather}) {
      for (const bool shared : {true, false}) {
        for (const std::int64_t count : {1000, 8192, 100'000, 1'500'000}) {
          CAPTURE(ranks);
          CAPTURE(to_string(kind));
          CAPTURE(shared);
          CAPTURE(count);
          const auto chosen = seconds(machine, shape_of(kind, count, shared, "auto"));
          REQUIRE(chosen.has_value());
          for (const std::string path : {"mpi", "shared:eager", "shared:pull", "shared:put", "shared:read"}) {
            CAPTURE(path);
            if (const auto forced = seconds(machine, shape_of(kind, count, shared, path)))
              CHECK(*chosen <= *forced * kTie);
          }
        }
      }
    }
  }
}

TEST_CASE("a core fetches again what another one has loaded or stored") {
  const Machine machine = machine_of(2);
  const double bytes = 8 * 8192;
  const double pulled = bytes / 17e9;
  const auto of_path = [&](const char* path) {
    return *seconds(machine, shape_of(CollectiveKind::allreduce, 8192, true, path, "doubling"));
  };
  // Each loads the other's vector, and adds its own, whose lines the other has loaded.
  CHECK(of_path("shared:pull") > 2 * pulled);
  // Each stores its vector into the other's result, who adds its own to that.
  CHECK(of_path("shared:put") > bytes / 20e9 + pulled);
  // Of halves each core adds up one, which nobody else touches.
  const auto scattered = seconds(machine, shape_of(CollectiveKind::reduce_scatter, 4096, true, "shared:pull", "ring"));
  REQUIRE(scattered.has_value());
  CHECK(*scattered < pulled / 2 + bytes / 2 / 40e9 + 1e-6);
}

TEST_CASE("cells of permuted axes are not read one by one") {
  Machine machine = machine_of(2);
  machine.costs["shared:read"] = cost_of({{"latency", 1.1e-6}, {"bandwidth", 20e9}, {"per_run", 250e-9}});
  const auto whole = DimDistribution::whole();
  const auto halves = DimDistribution::block(2);
  RedistributeShape shape;
  shape.from.array = {.extents = {64, 64, 64}, .dims = {halves, whole, whole}};
  shape.to.array = {.extents = {64, 64, 64}, .dims = {halves, whole, whole}};
  shape.axes = {2, 1, 0};
  const Planned planned = plan(machine, shape);
  CHECK(verify(planned.plans()).ok());
  const Plan one = planned.plan(1);
  CHECK(std::ranges::find(one.paths, "shared:read") == one.paths.end());
  CHECK(std::ranges::find(one.paths, "shared:eager") != one.paths.end());
  // By hand it may be had, and its price says what it costs: a list entry a cell.
  shape.path = "shared:read";
  CHECK(plan(machine, shape).predict().seconds > 32 * 64 * 32 * 250e-9);
}

TEST_CASE("a short piece that costs about the same goes without waiting for its receiver") {
  Machine machine = machine_of(2);
  machine.costs["shared:eager"] = of(0.35e-6, 18e9);
  const auto takes = [&](std::int64_t count, const char* path) {
    const Plan one = plan(machine, shape_of(CollectiveKind::alltoall, count, true, "auto", "direct")).plan(0);
    return std::ranges::find(one.paths, path) != one.paths.end();
  };
  CHECK(takes(8, "shared:eager"));
  CHECK_FALSE(takes(8, "shared:put"));
  CHECK(takes(8192, "shared:put"));
  CHECK_FALSE(takes(8192, "shared:eager"));
}

TEST_CASE("a message of scattered pieces pays for packing and unpacking all of their bytes") {
  Machine machine = machine_of(2);
  machine.costs["shared:eager"] = of(0.22e-6, 5e9);  // a message alone is faster
  TransferShape shape{.from = 0, .to = 1, .src = {}, .dst = {}, .memory = Memory::host, .shared = false};
  const auto takes_messages = [&] {
    const Plan one = plan(machine, shape).plan(0);
    return std::ranges::find(one.paths, "mpi") != one.paths.end();
  };
  constexpr std::int64_t kBytes = 512 * 512;
  shape.src = shape.dst = Layout::bytes(kBytes);
  machine.costs["shared:read"] = of(1, 1e9);
  CHECK(takes_messages());
  shape.src = shape.dst = Layout::vector(512, 512, 1024, Layout::bytes(1));
  CHECK_FALSE(takes_messages());
}
