// Planning for a thousand ranks: how large plans are, that neighbourhoods verify them, that planted flaws are found,
// and that collectives are planned and predicted.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kMostBytes = 24 << 10;  // of a rank's plan

// Of a halo of `side` x `side` x `side` ranks.
std::vector<Plan> cube(int side) {
  Machine machine = Machine::uniform(side * side * side, 8, 8);
  PathCost cost;
  cost.measured = true;
  machine.costs["shared:put"] = cost;
  cost.one_way.latency = cost.mutual.latency = 3e-6;
  for (const char* path : {"shared:pull", "shared:eager", "shared:read", "mpi"}) machine.costs[path] = cost;
  HaloShape halo;
  halo.extents = {60, 57, 70};  // boxes differ by a cell in dimension 1
  halo.grid.split = {side, side, side};
  halo.grid.reorder = true;
  halo.grid.periodic = {true, true, true};
  halo.fields.push_back({.name = "p", .shadow = 1, .width = 1});
  return plan(machine, halo).plans();
}

const std::vector<Plan>& thousand() {
  static const std::vector<Plan> plans = cube(10);
  return plans;
}

// The first command of a rank's plan that `wanted` likes.
template <class Wanted>
Command& find(Plan& plan, Wanted&& wanted) {
  const auto found = std::find_if(plan.commands.begin(), plan.commands.end(), wanted);
  REQUIRE(found != plan.commands.end());
  return *found;
}

void check_found(const std::vector<Plan>& plans, const std::string& word) {
  const NeighbourhoodReport report = verify_neighbourhoods(plans);
  INFO(report.text());
  REQUIRE(!report.ok());
  const bool said = std::any_of(report.problems.begin(), report.problems.end(),
                                [&](const std::string& problem) { return problem.find(word) != std::string::npos; });
  CHECK(said);
}

// Makes the command a copy between bytes that nobody else knows.
void set_idle(Plan& plan, Command& command) {
  Buffer idle;
  idle.name = "idle";
  idle.rank = plan.rank;
  idle.bytes = 16;
  StridedCopy copy;
  copy.block = copy.dst_offset = 8;
  Command quiet;
  quiet.lane = command.lane;
  quiet.path = command.path;
  quiet.first_dep = command.first_dep;
  quiet.dep_count = command.dep_count;
  quiet.src = quiet.dst = static_cast<std::int32_t>(plan.buffers.size());
  quiet.first_copy = static_cast<std::int32_t>(plan.copies.size());
  quiet.copy_count = 1;
  quiet.bytes = 8;
  command = quiet;
  plan.buffers.push_back(idle);
  plan.copies.push_back(copy);
}

}  // namespace

TEST_CASE("plans of 1000 ranks are small, and sound by neighbourhoods") {
  const auto& plans = thousand();
  REQUIRE(plans.size() == 1000);
  std::int64_t most = 0;
  for (const Plan& plan : plans) most = std::max(most, plan.memory());
  CHECK(most <= kMostBytes);
  const NeighbourhoodReport report = verify_neighbourhoods(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(report.classes >= 8);  // boxes of two extents, and where each is in its island
  CHECK(report.classes < 1000);
  CHECK(report.text().find("by neighbourhoods") != std::string::npos);
}

TEST_CASE("flaws of one rank among 216 are found: an offset, a signal, a tag, a peer") {
  constexpr std::size_t kRank = 117;
  auto plans = cube(6);
  const Plan sound = plans[kRank];

  SUBCASE("a shifted offset") {
    const Command& put = find(plans[kRank], [](const Command& c) { return c.verb == Verb::put; });
    plans[kRank].copies[static_cast<std::size_t>(put.first_copy)].dst_offset += 8;
    check_found(plans, "rank 0");
  }
  SUBCASE("a dropped signal") {
    Command& signal = find(plans[kRank], [](const Command& c) { return c.verb == Verb::signal; });
    set_idle(plans[kRank], signal);  // what keeps its place and tells nobody
    check_found(plans, "signal");
  }
  SUBCASE("a doubled tag") {
    Command& first = find(plans[kRank], [](const Command& c) { return c.verb == Verb::send; });
    first.tag += 1;
    check_found(plans, "send");
  }
  SUBCASE("another rank's place") {
    // All that went to one peer goes to a rank far away, which has a plan just like the peer's.
    const int peer = find(plans[kRank], [](const Command& c) { return c.verb == Verb::send; }).peer;
    const int other = (peer + 108) % 216;
    for (Command& c : plans[kRank].commands)
      if (c.peer == peer) c.peer = other;
    for (Buffer& b : plans[kRank].buffers) {
      if (b.rank == peer) b.rank = other;
      if (b.writer == peer) b.writer = other;
    }
    check_found(plans, "rank");
  }
  SUBCASE("a plan that is missing") {
    plans.resize(215);
    check_found(plans, "of which there is no plan");
  }
  SUBCASE("nothing") {
    plans[kRank] = sound;
    CHECK(verify_neighbourhoods(plans).ok());
  }
}

TEST_CASE("neighbourhoods say what they are not for") {
  CollectiveShape broadcast = CollectiveShape::broadcast(0, 1 << 20);
  broadcast.arity = 2;
  const auto plans = plan(Machine::uniform(9, 3, 3), broadcast).plans();
  CHECK(verify(plans).ok());
  CHECK_THROWS_WITH_AS(verify_neighbourhoods(plans), doctest::Contains("deal with one rank each"), Error);
}

TEST_CASE("a promise of a rank's bytes with whom nobody deals is found by neighbourhoods") {
  auto plans = thousand();
  Buffer far = plans[999].buffers[static_cast<std::size_t>(plans[999].expects[0].dst)];
  REQUIRE(far.rank == 999);
  plans[0].expects[0].src = static_cast<std::int32_t>(plans[0].buffers.size());
  far.rank = 555;  // neither 0 nor a peer of it
  plans[0].buffers.push_back(far);
  check_found(plans, "is to get bytes of rank 555, and deals with it nowhere");
}

TEST_CASE("halos of all kinds are sound by neighbourhoods") {
  for (const bool reverse : {false, true})
    for (const bool corners : {false, true})
      for (const char* path : {"auto", "mpi", "shared:put,mpi", "shared:eager,mpi", "shared:pull,mpi"}) {
        CAPTURE(path);
        CAPTURE(reverse);
        CAPTURE(corners);
        HaloShape halo;
        halo.extents = {40, 36};
        halo.grid.periodic = {true, true};
        halo.corners = corners;
        halo.reverse = reverse;
        halo.path = path;
        for (const char* name : {"p", "q"}) halo.fields.push_back({.name = name, .shadow = 2, .width = 2});
        const auto plans = plan(Machine::uniform(60, 4, 4), halo).plans();
        const NeighbourhoodReport report = verify_neighbourhoods(plans);
        INFO(report.text());
        CHECK(report.ok());
        CHECK(verify(plans).ok());
      }
}

namespace {

Planned collective(CollectiveKind kind, int ranks, const std::string& algorithm = "auto") {
  CollectiveShape shape;
  shape.kind = kind;
  shape.count = 100;
  shape.type = DType::f64;
  shape.algorithm = algorithm;
  return plan(Machine::uniform(ranks, 8, 8), shape);
}

}  // namespace

TEST_CASE("neighbourhoods refuse every collective that passes on what it received, and find no other flaw") {
  int refused = 0, followed = 0;
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter,
        CollectiveKind::allgather, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::alltoall,
        CollectiveKind::scan, CollectiveKind::exscan, CollectiveKind::barrier})
    for (const std::string algorithm : {"exchange", "direct", "doubling", "ring", "halving", "bruck", "binomial",
                                        "pairwise", "dissemination", "hierarchical"}) {
      CAPTURE(to_string(kind));
      CAPTURE(algorithm);
      std::vector<Plan> plans;
      try {
        plans = collective(kind, 24, algorithm).plans();
      } catch (const Error&) {
        continue;  // it has no such algorithm
      }
      REQUIRE(verify(plans).ok());
      try {
        const NeighbourhoodReport report = verify_neighbourhoods(plans);
        INFO(report.text());
        CHECK(report.ok());
        ++followed;
      } catch (const Error& error) {
        ++refused;
      }
    }
  CHECK(refused >= 15);
  CHECK(followed >= 5);
  CHECK_THROWS_WITH_AS(verify_neighbourhoods(collective(CollectiveKind::allreduce, 24, "doubling").plans()),
                       doctest::Contains("neither pass on nor combine what they received"), Error);
}

TEST_CASE("an allreduce of 1024 ranks in islands of 8 is planned and predicted") {
  const Planned planned = collective(CollectiveKind::allreduce, 1024);
  const Prediction prediction = planned.predict();
  CHECK(prediction.ranks.size() == 1024);
  CHECK(prediction.seconds > 0);
  // What is made of all ranks together is what is made of a rank by itself, and its table speaks of the same epoch.
  const std::vector<Plan> plans = planned.plans();
  for (const int rank : {0, 33, 1023}) CHECK(plans[static_cast<std::size_t>(rank)] == planned.plan(rank));
  CHECK(predict(plans, Machine::uniform(1024, 8, 8)).seconds == prediction.seconds);
  CHECK(planned.explain(33).find(prediction.text()) != std::string::npos);
}

TEST_CASE("an all-to-all of 200 ranks sends a message from each rank to each") {
  const Planned planned = collective(CollectiveKind::alltoall, 200, "direct");
  CHECK(planned.messages().size() == 200 * 199);
  const Prediction prediction = planned.predict();
  CHECK(prediction.between_islands == 200 * 192 * 100 * 8);
  CHECK(planned.plans()[77] == planned.plan(77));
}

TEST_CASE("the verifier finds nothing in plans that are made for many ranks together") {
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reduce_scatter,
        CollectiveKind::alltoall, CollectiveKind::gather, CollectiveKind::scan}) {
    CAPTURE(to_string(kind));
    const VerifyReport report = verify(collective(kind, 40).plans());
    INFO(report.text());
    CHECK(report.ok());
  }
}

TEST_CASE("what looks up while planning ends it") {
  static int looks = 0;
  looks = 0;
  const Machine machine = Machine::uniform(64, 8, 8);
  set_planning_look([] {
    if (++looks > 3) throw Interruption();
  });
  CollectiveShape shape;
  shape.kind = CollectiveKind::alltoall;
  shape.count = 100;
  CHECK_THROWS_AS(plan(machine, shape), Interruption);
  set_planning_look(nullptr);
  CHECK(looks == 4);
  CHECK(plan(machine, shape).predict().seconds > 0);
}

TEST_CASE("a neighbour collective of 1000 ranks is planned, sound by neighbourhoods, and predicted") {
  const Machine machine = Machine::uniform(1000, 8, 8);
  const Planned planned = plan(machine, NeighbourShape::on_grid(machine, {10, 10, 10}, {true, true, false}, 4096));
  const auto plans = planned.plans();
  std::int64_t most = 0;
  for (const Plan& plan : plans) most = std::max(most, plan.memory());
  CHECK(most <= kMostBytes);
  const NeighbourhoodReport report = verify_neighbourhoods(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(planned.predict().seconds > 0);
}
