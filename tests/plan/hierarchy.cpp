// Hierarchical collectives: what crosses islands' boundaries is the least there can be, all ranks of an island carry
// their share of it, and they are chosen where that pays.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "collectives/islands.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

bool is_scan(CollectiveKind kind) {
  return kind == CollectiveKind::scan || kind == CollectiveKind::exscan;
}

bool has_chunks(CollectiveKind kind) {
  return kind != CollectiveKind::alltoall && kind != CollectiveKind::barrier;
}

// Of a barrier everybody's word to every other island.
std::int64_t least_for(const CollectivePlan& layout) {
  const auto islands = static_cast<std::int64_t>(Islands(layout.collective()).count());
  const std::int64_t least = least_across(layout.collective());
  return layout.collective().kind() == CollectiveKind::barrier ? islands * (islands - 1) : least;
}

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

bool by_island(const Machine::Rank& a, const Machine::Rank& b) {
  return a.island < b.island;
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
      for (const CollectiveKind kind : all_collectives()) {
        if (is_scan(kind) && !std::is_sorted(machine.ranks.begin(), machine.ranks.end(), by_island)) continue;
        for (const std::int64_t chunk : {0, 100}) {
          if (chunk > 0 && !has_chunks(kind)) continue;
          CollectiveShape shape = shape_of(kind, machine.size(), 137);
          shape.chunk = chunk;
          const CollectivePlan layout(machine, shape);
          INFO(to_string(kind));
          INFO(machine.size());
          INFO(sizes.size());
          CAPTURE(chunk);
          CHECK(layout.across() == least_for(layout));
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

TEST_CASE("hierarchical collectives are sound for 2 to 64 ranks, whatever the counts, in place or not") {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (const int ranks : {2, 3, 5, 6, 8, 13, 16, 24, 33, 64}) {
    for (const CollectiveKind kind : all_collectives()) {
      for (int trial = 0; trial < (ranks > 16 ? 1 : 4); ++trial) {
        Machine machine;
        for (int r = 0, island = 0, left = 0; r < ranks; ++r, --left) {
          if (left == 0 && r > 0) ++island;
          if (left == 0) left = 1 + below(std::max(ranks / 2, 2));
          machine.ranks.push_back({island, island, -1});
        }
        CollectiveShape shape = shape_of(kind, ranks, ranks > 24 && kind == CollectiveKind::alltoall ? 1 : below(40));
        shape.root = below(ranks);
        shape.in_place = kind != CollectiveKind::broadcast && kind != CollectiveKind::barrier && below(2) == 0;
        const bool blocks = kind == CollectiveKind::allgather || kind == CollectiveKind::reduce_scatter ||
                            kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
        if (blocks && below(2) == 0)
          for (int r = 0; r < ranks; ++r) shape.counts.push_back(below(3) == 0 ? 0 : below(9));
        if (kind == CollectiveKind::alltoall && !shape.in_place && ranks < 20)
          for (int i = 0; i < ranks * ranks; ++i) shape.counts.push_back(below(3) == 0 ? 0 : below(5));
        if (has_chunks(kind) && ranks < 40 && below(2) == 0) shape.chunk = 1 + below(200);
        INFO(to_string(kind));
        CAPTURE(ranks);
        CAPTURE(shape.in_place);
        CAPTURE(shape.root);
        const CollectivePlan layout(machine, shape);
        CHECK(layout.across() == least_for(layout));
        const VerifyReport report = verify(plan(machine, shape).plans());
        INFO(report.text());
        CHECK(report.ok());
      }
    }
  }
}

TEST_CASE("scans cross islands only where these follow each other") {
  const Machine machine = machine_of({2, 2}, true);
  for (const CollectiveKind kind : {CollectiveKind::scan, CollectiveKind::exscan}) {
    CHECK_THROWS_WITH_AS(plan(machine, shape_of(kind, 4, 10)),
                         (std::string(to_string(kind)) +
                          " with algorithm 'hierarchical': the ranks of islands do not follow each other, and scans "
                          "combine in rank order")
                             .c_str(),
                         Error);
    CollectiveShape shape = shape_of(kind, 4, 10);
    shape.algorithm = "auto";
    CHECK(CollectivePlan(machine, shape).algorithm().name == "doubling");
  }
}

TEST_CASE("an all-to-all over islands sends one message to a rank from each other island") {
  const Machine machine = machine_of({4, 4, 4}, false);
  const std::vector<Plan> plans = plan(machine, shape_of(CollectiveKind::alltoall, 12, 3)).plans();
  for (const Plan& plan : plans)
    CHECK(std::count_if(plan.commands.begin(), plan.commands.end(), [&](const Command& c) {
            return c.verb == Verb::recv && !machine.same_island(plan.rank, c.peer);
          }) == 2);
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
    for (const CollectiveKind kind : all_collectives()) {
      if (kind == CollectiveKind::barrier) continue;  // a byte is sent by one
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
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::allgather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::reduce}) {
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
  // Large vectors, which an island of a host may reduce so, are left out.
  for (const Machine& machine : {machine_of({4}, false), machine_of({1, 1, 1, 1}, false)}) {
    for (const CollectiveKind kind : all_collectives()) {
      CollectiveShape shape = shape_of(kind, 4, 1 << 15);
      shape.algorithm = "auto";
      const std::string text = plan(machine, shape).explain(0);
      CHECK(text.find("hierarchical") == std::string::npos);
    }
  }
}
