// Short rings: links of protocol `eager` that are larger than a few slots hand their slices over in these slots, with
// credit for each. Slots are made small here, so that small plans have many slices.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "collective_shapes.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

Machine machine_of(int ranks, std::int64_t slot, std::int64_t slots) {
  Machine machine = Machine::uniform(ranks, ranks, 0);
  machine.constants.eager_slot = slot;
  machine.constants.eager_step = slot;
  machine.constants.eager_ring = slot * slots;
  machine.constants.eager_large = slot;
  return machine;
}

TransferShape transfer_of(const Layout& src, const Layout& dst) {
  TransferShape transfer;
  transfer.to = 1;
  transfer.src = src;
  transfer.dst = dst;
  transfer.path = "shared:eager";
  return transfer;
}

CollectiveShape exchange_of(std::int64_t bytes) {
  CollectiveShape shape;
  shape.kind = CollectiveKind::alltoall;
  shape.algorithm = "direct";
  shape.path = "shared:eager";
  shape.count = bytes;
  return shape;
}

// Rings of a plan's own rank: bytes of all instances.
std::vector<std::int64_t> rings(const Plan& plan) {
  std::vector<std::int64_t> all;
  for (const Buffer& b : plan.buffers)
    if (b.purpose == Purpose::ring && b.rank == plan.rank) all.push_back(b.bytes * b.ring);
  return all;
}

// Random shapes of each algorithm of each collective, on a machine that `machine_for` makes of the number of ranks.
template <class MachineFor>
void check_every_algorithm(Random& random, const MachineFor& machine_for) {
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (int i = 0; i < 20; ++i) {
        const int ranks = 2 + static_cast<int>(below(random, 6));
        CollectiveShape shape = random_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.path = "shared:eager";
        if (algorithm->settings != nullptr) shape.chunk = below(random, 2) == 0 ? 0 : 1 + below(random, 300);
        check(machine_for(ranks), shape);
      }
    }
  }
}

}  // namespace

TEST_CASE("a large link has a ring of them, any other a ring of whole epochs") {
  const Machine machine = machine_of(2, 256, 4);
  for (const std::int64_t bytes : {100, 256, 300, 1100, 5000, 60000}) {
    const auto plans = plan(machine, transfer_of(Layout::bytes(bytes), Layout::bytes(bytes))).plans();
    CAPTURE(bytes);
    CHECK(verify(plans).ok());
    CHECK(rings(plans[0]).empty());
    REQUIRE(rings(plans[1]).size() == 1);
    if (bytes <= 256) CHECK(rings(plans[1])[0] >= 2 * bytes);
    if (bytes > 256) CHECK(rings(plans[1])[0] == 1024);
  }
}

TEST_CASE(
    "plans with slots are sound, and their time can be predicted: one way, both ways, odd sizes, any count of slots") {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t slot = 64 * (1 + below(random, 4));
    Machine machine = machine_of(2, slot, 1 + below(random, 5));
    if (below(random, 2) == 0) machine.constants.eager_large = 64;  // also where there are more slots than slices
    const std::int64_t bytes = 8 * (1 + below(random, 400));
    CAPTURE(slot);
    CAPTURE(machine.constants.eager_ring);
    CAPTURE(bytes);
    const Layout whole = Layout::bytes(bytes);
    const Layout rows = Layout::vector(bytes / 8, 8, 24, Layout::bytes(1));
    const auto one_way = plan(machine, transfer_of(whole, below(random, 2) == 0 ? whole : rows)).plans();
    CHECK(verify(one_way).ok());
    CHECK(predict(one_way, machine).seconds > 0);
    const auto both_ways = plan(machine, exchange_of(bytes)).plans();
    CHECK(verify(both_ways).ok());
    CHECK(predict(both_ways, machine).seconds > 0);
  }
}

TEST_CASE("every algorithm of every collective is sound where its links have slots") {
  Random random(12);
  check_every_algorithm(random, [&](int ranks) { return machine_of(ranks, 64, 1 + below(random, 3)); });
}

TEST_CASE("what one rank sends in one piece is handed over in slices, in a ring of whole epochs") {
  Machine machine = Machine::uniform(2, 2, 0);
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.algorithm = "binomial";
  shape.path = "shared:eager";
  const auto slices_of = [&](std::int64_t bytes) {
    shape.count = bytes;
    check(machine, shape);
    const Plan sender = plan(machine, shape).plan(0);
    return std::count_if(sender.commands.begin(), sender.commands.end(), [](auto& c) { return c.verb == Verb::put; });
  };
  CHECK(slices_of((16 << 10) - 1) == 1);
  CHECK(slices_of(16 << 10) == 2);
  CHECK(slices_of((40 << 10) + 8) == 6);
  CHECK(slices_of(128 << 10) == 8);
  machine.constants.transfer_parts = 1;
  CHECK(slices_of(128 << 10) == 1);
}

TEST_CASE("every algorithm of every collective is sound where pieces that go one way are cut") {
  Random random(13);
  check_every_algorithm(random, [&](int ranks) {
    Machine machine = Machine::uniform(ranks, ranks, 0);
    machine.constants.transfer_part = 1 + below(random, 64);
    return machine;
  });
}

TEST_CASE("few large chunks use slots one after the other, many small ones stay a loop with a ring of whole epochs") {
  CollectiveShape shape;
  shape.kind = CollectiveKind::broadcast;
  shape.algorithm = "trees";
  shape.trees = 1;
  shape.arity = 1;
  shape.path = "shared:eager";
  const Machine machine = machine_of(3, 128, 4);
  for (const std::int64_t chunk : {1024, 64}) {
    shape.chunk = chunk;
    shape.count = 100 * 1024;
    check(machine, shape);
    const Plan one = plan(machine, shape).plan(1);
    REQUIRE(rings(one).size() == 1);
    CHECK((rings(one)[0] < shape.count) == (chunk == 1024));
    CHECK(one.loops.empty() == (chunk == 1024));
  }
}

TEST_CASE("a wait for less credit than a slice needs is noticed") {
  for (const bool mutual : {false, true}) {
    const Machine machine = machine_of(2, 128, 3);
    const auto plans = mutual ? plan(machine, exchange_of(1500)).plans()
                              : plan(machine, transfer_of(Layout::bytes(1500), Layout::bytes(1500))).plans();
    REQUIRE(verify(plans).ok());
    int waits = 0;
    for (std::size_t i = 0; i < plans[0].commands.size(); ++i) {
      const Command& c = plans[0].commands[i];
      if (c.verb != Verb::wait || plans[0].buffers[static_cast<std::size_t>(c.src)].purpose != Purpose::credit)
        continue;
      ++waits;
      CAPTURE(i);
      if (c.index > 0) {
        std::vector<Plan> changed = plans;
        changed[0].commands[i].index -= 1;
        CHECK_FALSE(verify(changed).ok());
      }
      std::vector<Plan> changed = plans;
      changed[0].commands[i].lag += 1;
      changed[0].commands[i].credit = true;
      CHECK_FALSE(verify(changed).ok());
    }
    CHECK(waits == 12);  // 1500 bytes, 128 at a time
  }
}

TEST_CASE(
    "in host memory a ring holds the more epochs the smaller they are, but no more than fit and no fewer than two") {
  const Machine machine = Machine::uniform(2, 2, 0);
  for (const auto& [bytes, epochs] : {std::pair<std::int64_t, std::int64_t>{4096, 8},
                                      {8192, 16},
                                      {65536, 16},
                                      {100'000, 10},
                                      {500'000, 2},
                                      {1 << 20, 2}}) {
    CAPTURE(bytes);
    const auto plans = plan(machine, exchange_of(bytes)).plans();
    CHECK(verify(plans).ok());
    REQUIRE(rings(plans[0]).size() == 1);
    CHECK(rings(plans[0])[0] == bytes * epochs);
  }
}
