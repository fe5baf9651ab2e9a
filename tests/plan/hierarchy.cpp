// Hierarchical collectives: what crosses islands' boundaries is the least there can be, all ranks of an island carry
// their share of it, and they are chosen where that pays.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

const std::vector<CollectiveKind> kKinds{CollectiveKind::broadcast, CollectiveKind::allreduce,
                                         CollectiveKind::allgather, CollectiveKind::reduce_scatter};

// Islands of such sizes, each on a host of its own, so that only messages cross. `mixed`: ranks take turns.
Machine machine_of(const std::vector<int>& sizes, bool mixed) {
  Machine machine;
  std::vector<int> left = sizes;
  for (int island = 0; std::any_of(left.begin(), left.end(), [](int n) { return n > 0; });) {
    auto& count = left[static_cast<std::size_t>(island)];
    if (count > 0) {
      --count;
      machine.ranks.push_back({island, island, -1});
    }
    if (mixed || count == 0) island = (island + 1) % static_cast<int>(sizes.size());
  }
  return machine;
}

CollectiveShape shape_of(CollectiveKind kind, int ranks, std::int64_t count) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.root = ranks - 1;
  shape.type = kind == CollectiveKind::broadcast ? DType::u8 : DType::f64;
  shape.count = count;
  shape.algorithm = "hierarchical";
  return shape;
}

// Bytes of the messages that each rank sends to ranks of other islands.
std::vector<std::int64_t> sent_across(const Machine& machine, const std::vector<Plan>& plans) {
  std::vector<std::int64_t> sent;
  for (const Plan& plan : plans) {
    std::int64_t bytes = 0;
    for (const Command& c : plan.commands) {
      if (c.verb != Verb::send || machine.same_island(plan.rank, c.peer)) continue;
      bytes += c.bytes * (c.loop < 0 ? 1 : plan.loops[static_cast<std::size_t>(c.loop)].count);
    }
    sent.push_back(bytes);
  }
  return sent;
}

}  // namespace

TEST_CASE("hierarchical collectives are sound, and no byte crosses a boundary more often than it must") {
  const std::vector<std::vector<int>> machines{{2, 2}, {4, 4}, {2, 2, 2}, {3, 2}, {1, 4, 2}, {5, 1}, {3, 3, 3, 3}};
  for (const auto& sizes : machines) {
    for (const bool mixed : {false, true}) {
      const Machine machine = machine_of(sizes, mixed);
      for (const CollectiveKind kind : kKinds) {
        for (const std::int64_t chunk : {0, 100}) {
          CollectiveShape shape = shape_of(kind, machine.size(), 137);
          shape.chunk = chunk;
          const CollectivePlan layout(machine, shape);
          INFO(to_string(kind));
          INFO(machine.size());
          INFO(sizes.size());
          CAPTURE(chunk);
          CHECK(layout.across() == least_across(layout.collective()));
          const std::vector<Plan> plans = plan(machine, shape).plans();
          std::int64_t sum = 0;
          for (const std::int64_t bytes : sent_across(machine, plans)) sum += bytes;
          CHECK(sum == layout.across());
          const VerifyReport report = verify(plans);
          INFO(report.text());
          CHECK(report.ok());
        }
      }
    }
  }
}

TEST_CASE("a flat algorithm sends more bytes across than a hierarchical one") {
  const Machine machine = machine_of({4, 4}, true);
  for (const auto& [kind, name] :
       std::vector<std::pair<CollectiveKind, std::string>>{{CollectiveKind::allreduce, "ring"},
                                                           {CollectiveKind::allgather, "direct"},
                                                           {CollectiveKind::reduce_scatter, "direct"},
                                                           {CollectiveKind::broadcast, "binomial"}}) {
    CollectiveShape shape = shape_of(kind, 8, 800);
    shape.algorithm = name;
    const CollectivePlan flat(machine, shape);
    CHECK(flat.across() > least_across(flat.collective()));
  }
}

TEST_CASE("all ranks of an island send their share of what crosses") {
  for (const auto& sizes : std::vector<std::vector<int>>{{4, 4}, {3, 3, 3}}) {
    const Machine machine = machine_of(sizes, false);
    for (const CollectiveKind kind : kKinds) {
      const std::int64_t count = 720 * machine.size();
      CollectiveShape shape = shape_of(kind, machine.size(), count);
      const auto sent = sent_across(machine, plan(machine, shape).plans());
      INFO(to_string(kind));
      for (std::size_t r = 0; r < sent.size(); ++r) {
        const auto first = r / static_cast<std::size_t>(sizes[0]) * static_cast<std::size_t>(sizes[0]);
        CHECK(sent[r] == sent[first]);
      }
    }
  }
}

TEST_CASE("where links between islands are slow, large collectives become hierarchical, small ones need not") {
  Machine machine = machine_of({4, 4}, false);
  machine.costs["mpi"].one_way = machine.costs["mpi"].mutual = {20e-6, 1e9, 1e9, 2e-9};
  for (const char* path : {"shared:put", "shared:pull", "shared:eager", "shared:read", "self"})
    machine.costs[path].one_way = machine.costs[path].mutual = {0.5e-6, 10e9, 10e9, 2e-9};
  for (const CollectiveKind kind : kKinds) {
    CollectiveShape shape = shape_of(kind, 8, 1 << 20);
    shape.algorithm = "auto";
    shape.shared = true;
    const CollectivePlan layout(machine, shape);
    const std::string text = plan(machine, shape).explain(0);
    INFO(text);
    CHECK(layout.algorithm().name == "hierarchical");
    CHECK(text.find("bytes across islands, of all ranks: " + std::to_string(layout.across()) +
                    "; the least there can be: " + std::to_string(layout.across())) != std::string::npos);
  }
}

TEST_CASE("where there is one island, or islands of one rank, nobody looks at hierarchical algorithms") {
  for (const Machine& machine : {machine_of({4}, false), machine_of({1, 1, 1, 1}, false)}) {
    for (const CollectiveKind kind : kKinds) {
      CollectiveShape shape = shape_of(kind, 4, 1 << 18);
      shape.algorithm = "auto";
      const std::string text = plan(machine, shape).explain(0);
      CHECK(text.find("hierarchical") == std::string::npos);
    }
  }
}
