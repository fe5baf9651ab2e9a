// Passes: what `message order` makes of lanes written by hand, and of plans that the planner makes for all ranks of a
// machine; what it makes verifies as what it was given does, and plans without background messages stay as they are.
#include "plan/passes/pass.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "plan_samples.hpp"
#include "planner/planner.hpp"
#include "sliced_links.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;
using namespace sliced_links;

namespace {

StridedCopy block(std::int64_t src, std::int64_t dst, std::int64_t bytes = 16) {
  StridedCopy copy;
  copy.src_offset = src;
  copy.dst_offset = dst;
  copy.block = bytes;
  return copy;
}

// `copy0 copy1 | send2<0 send3<1 | `: lanes of commands with what they depend on.
std::string text_of(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& c = plan.commands[i];
    if (i > 0 && c.lane != plan.commands[i - 1].lane) text += "| ";
    text += std::string(to_string(c.verb)) + std::to_string(i);
    for (std::int32_t d = c.first_dep; d < c.first_dep + c.dep_count; ++d)
      text += '<' + std::to_string(plan.deps[static_cast<std::size_t>(d)]);
    text += ' ';
  }
  return text;
}

Plan passed(Plan plan) {
  run_passes(plan, std::vector<bool>(plan.paths.size(), true));
  return plan;
}

// Plan of rank 0 of three, with a field, staging and a builder for the lanes.
struct Lanes {
  Builder builder{"test", 0, 3};
  int field = 0;
  int out = 0;
  int in = 0;
  Lanes() {
    builder.set_path("background");
    field = builder.buffer("field", 0, Role::inout, 256);
    out = builder.buffer("out", 0, Role::scratch, 64);
    in = builder.buffer("in", 0, Role::scratch, 64);
  }
  int pack(std::int64_t at, int peer = 1) { return builder.copy(peer, field, out, std::array{block(at, at)}, 0, 0); }
  int send(std::int64_t at, std::int64_t bytes = 16, int peer = 1) { return builder.send(peer, out, at, bytes, 0, 0); }
  int receive(std::int64_t at, std::int64_t bytes = 16, int peer = 1) {
    return builder.recv(peer, in, at, bytes, 0, 0);
  }
  int unpack(std::int64_t at, int peer = 1) {
    return builder.copy(peer, in, field, std::array{block(at, 128 + at)}, 0, 0);
  }
  int add(std::int64_t at, int peer = 1) {
    return builder.reduce(peer, in, field, std::array{block(at, 192)}, 0, 0, DType::f64);
  }
};

}  // namespace

TEST_CASE("slices that are sent: each message waits for its own packing, and packing for no message") {
  Lanes lanes;
  lanes.builder.begin_lane();
  for (const std::int64_t at : {0, 16, 32}) {
    lanes.pack(at);
    lanes.send(at);
  }
  const Plan before = lanes.builder.finish();
  CHECK(text_of(before) == "copy0 send1 copy2 send3 copy4 send5 ");
  const Plan after = passed(before);
  CHECK(text_of(after) == "copy0 copy1 copy2 | send3<0 send4<1 send5<2 ");
  // Commands are the same but for their places, and nothing else has changed.
  for (const auto& [now, then] : {std::pair{0, 0}, {1, 2}, {2, 4}, {3, 1}, {4, 3}, {5, 5}}) {
    Command c = after.commands[static_cast<std::size_t>(now)];
    c.lane = 0;
    c.first_dep = c.dep_count = 0;
    CHECK(c == before.commands[static_cast<std::size_t>(then)]);
  }
  Plan rest = after;
  rest.commands = before.commands;
  rest.deps.clear();
  CHECK(rest == before);
}

TEST_CASE("a message of several packings waits for the last of them, one that is packed again is awaited") {
  Lanes lanes;
  lanes.builder.begin_lane();
  lanes.pack(0, 1);
  lanes.pack(16, 2);
  lanes.send(0, 32);
  lanes.pack(0, 1);  // the same place
  lanes.send(0);
  lanes.pack(48, 2);  // another one
  lanes.send(48);
  CHECK(text_of(passed(lanes.builder.finish())) == "copy0 copy1 copy2<4 copy3 | send4<1 send5<2 send6<3 ");
}

TEST_CASE("slices that are received: each unpacking waits for its own message") {
  Lanes lanes;
  lanes.builder.begin_lane();
  for (const std::int64_t at : {0, 16, 32}) {
    lanes.receive(at);
    lanes.unpack(at);
  }
  CHECK(text_of(passed(lanes.builder.finish())) == "recv0 recv1 recv2 | copy3<0 copy4<1 copy5<2 ");
}

TEST_CASE("a message into the same place waits until the last one has been unpacked, and unpacking for all it reads") {
  Lanes lanes;
  lanes.builder.begin_lane();
  lanes.receive(0);
  lanes.receive(16);
  lanes.builder.copy(1, lanes.in, lanes.field, std::array{block(8, 128)}, 0, 0);  // half of each
  lanes.receive(0);
  lanes.unpack(0);
  CHECK(text_of(passed(lanes.builder.finish())) == "recv0 recv1 recv2<3 | copy3<1<0 copy4<2<0 ");
}

TEST_CASE("additions keep their order across lanes when their commands move") {
  Lanes lanes;
  lanes.builder.begin_lane();  // from rank 1: #0 recv #1 add #2 recv #3 add
  lanes.receive(0);
  lanes.add(0);
  lanes.receive(16);
  const int last_of_first = lanes.add(16);
  lanes.builder.begin_lane();  // from rank 2: #4 recv #5 add #6 recv #7 add
  lanes.receive(32, 16, 2);
  const int first_of_second = lanes.add(32, 2);
  lanes.receive(48, 16, 2);
  const int last_of_second = lanes.add(48, 2);
  lanes.builder.begin_lane();  // and this rank's own: #8
  const int own = lanes.builder.reduce(0, lanes.field, lanes.field, std::array{block(0, 192)}, 0, 0, DType::f64);
  lanes.builder.depend(first_of_second, last_of_first);
  lanes.builder.depend(own, last_of_second);
  const Plan before = lanes.builder.finish();
  CHECK(text_of(before) == "recv0 reduce1 recv2 reduce3 | recv4 reduce5<3 recv6 reduce7 | reduce8<7 ");
  CHECK(text_of(passed(before)) ==
        "recv0 recv1 | reduce2<0 reduce3<1 | recv4 recv5 | reduce6<3<4 reduce7<5 | reduce8<7 ");
}

TEST_CASE("lanes that have nothing to gain stay as they are") {
  Lanes lanes;
  Builder& builder = lanes.builder;
  SUBCASE("messages alone") {
    builder.begin_lane();
    lanes.receive(0);
    lanes.send(0);
  }
  SUBCASE("moves alone") {
    builder.begin_lane();
    lanes.pack(0);
    lanes.unpack(0);
  }
  SUBCASE("signals and waits, which order what they stand between") {
    builder.begin_lane();
    builder.wait(1, builder.counter("ready<1", 0));
    lanes.pack(0);
    lanes.send(0);
    builder.begin_lane();
    lanes.receive(0);
    lanes.unpack(0);
    builder.signal(1, builder.counter("ready<0", 1));
  }
  SUBCASE("chunk loops") {
    builder.begin_lane();
    builder.begin_loop(3, 16);
    lanes.pack(0);
    lanes.send(0);
    builder.end_loop();
  }
  SUBCASE("nothing at all") {}
  const Plan before = builder.finish();
  CHECK(passed(before) == before);
}

TEST_CASE("only those lanes change whose path carries messages in the background") {
  Lanes lanes;
  lanes.builder.begin_lane();
  lanes.pack(0);
  lanes.send(0);
  lanes.builder.set_path("foreground");
  lanes.builder.begin_lane();
  lanes.pack(16);
  const int second = lanes.send(16);
  lanes.builder.begin_lane();
  lanes.builder.depend(lanes.pack(32), second);
  Plan plan = lanes.builder.finish();
  const Plan before = plan;
  run_passes(plan, {false, false});
  CHECK(plan == before);
  run_passes(plan, {true, false});
  CHECK(text_of(plan) == "copy0 | send1<0 | copy2 send3 | copy4<3 ");
  // Once more changes nothing: a lane has either messages or moves then.
  const Plan once = plan;
  run_passes(plan, {true, false});
  CHECK(plan == once);
  run_passes(plan, {true, true});
  CHECK(text_of(plan) == "copy0 | send1<0 | copy2 | send3<2 | copy4<3 ");
}

TEST_CASE("an observer sees the plan before the passes and after each; a pass that leaves a defect is named") {
  std::vector<std::string> seen;
  std::vector<Plan> plans;
  const auto observer = [&](const std::string& pass, const Plan& plan) {
    seen.push_back(pass);
    plans.push_back(plan);
  };
  Lanes lanes;
  lanes.builder.begin_lane();
  lanes.pack(0);
  lanes.send(0);
  Plan plan = lanes.builder.finish();
  const Plan before = plan;
  run_passes(plan, {true}, observer);
  CHECK(seen == std::vector<std::string>{"emit", "message order"});
  CHECK(plans == std::vector<Plan>{before, plan});
  Plan unsound = before;
  unsound.commands[0].bytes = 17;
  CHECK_THROWS_WITH_AS(
      run_passes(unsound, {true}),
      doctest::Contains("rank 0: test: pass 'message order' left an unsound plan (a defect in Tasuki)"), Error);
}

TEST_CASE("halos in messages verify before and after, and every dependency that the pass adds is needed") {
  for (const std::int32_t ranks : {2, 3, 5}) {
    const auto before = samples::message_halo(ranks);
    CHECK(verify(before).ok());
    auto after = samples::parted(before);
    CHECK(after != before);
    const VerifyReport report = verify(after);
    INFO(report.text());
    CHECK(report.ok());
    CHECK(report.commands == verify(before).commands);
    for (std::size_t i = 0; i < after[0].commands.size(); ++i) {
      Command& c = after[0].commands[i];
      if (c.dep_count == 0) continue;
      const Command kept = c;
      c.dep_count = 0;
      CHECK_FALSE(verify(after).ok());
      c = kept;
    }
  }
}

TEST_CASE("links in slices, copied or added, verify before and after") {
  std::mt19937 random(51);
  for (int round = 0; round < 12; ++round) {
    std::array<std::vector<Move>, 2> sent;
    for (auto& moves : sent) moves = random_moves(random, 8, round % 3 == 0 ? DType::f64 : DType::none);
    const Sliced sliced(Home::pinned, round % 4 == 3 ? kRoom : 1000);
    std::vector<Plan> plans{plan_of(sliced, 0, sent), plan_of(sliced, 1, sent)};
    const VerifyReport before = verify(plans);
    for (Plan& plan : plans) plan = passed(plan);
    const VerifyReport after = verify(plans);
    INFO(before.text(), after.text());
    CHECK(before.ok());
    CHECK(after.ok());
    CHECK(after.commands == before.commands);
    for (const Plan& plan : plans) CHECK(plan.commands.back().lane == 3);
  }
}

namespace {

// Every rank sends a face to the next and to the one before, which copies or adds them; with two ranks both go to the
// same, as links of two moves.
std::vector<Move> ring_moves(int rank, int ranks, DType add) {
  std::vector<Move> moves;
  for (int from = 0; from < ranks; ++from) {
    for (const int way : {0, 1}) {
      const int to = (from + (way == 0 ? 1 : ranks - 1)) % ranks;
      if (from != rank && to != rank) continue;
      Move move;
      move.src_rank = from;
      move.dst_rank = to;
      move.add = add;
      move.seq = way;
      StridedCopy copy;
      copy.src_offset = way == 0 ? 0 : 8 * 3001;
      copy.dst_offset = way == 0 ? 8 * 6002 : 8 * 9003;
      if (add != DType::none) copy.dst_offset = 8 * 6002;  // all meet in the same numbers
      copy.block = 8;
      copy.ndims = 1;
      copy.dims[0] = {1000, 24, 16};
      move.copies = {copy};
      move.label = "face";
      moves.push_back(move);
    }
  }
  mark_mutual(moves);
  return moves;
}

// The plans of all ranks by pass.
std::map<std::string, std::vector<Plan>> planned(const Machine& machine, const std::string& path, Memory memory,
                                                 DType add) {
  const int ranks = machine.size();
  Facts facts;
  BufferFact fact;
  fact.bytes = 8 * 12004;
  fact.memory = memory;
  fact.shared = true;
  fact.alignment = 16;
  for (int rank = 0; rank < ranks; ++rank) facts.set(rank, {fact});
  std::vector<Problem> problems;
  std::vector<std::vector<Decision>> decisions;
  for (int rank = 0; rank < ranks; ++rank) {
    Problem& problem = problems.emplace_back();
    problem.operation = "ring";
    problem.rank = rank;
    problem.buffers = {{"field", Role::inout}};
    problem.moves = ring_moves(rank, ranks, add);
    problem.wanted = path;
    decisions.push_back(choose(machine, problem, facts));
  }
  std::map<std::string, std::vector<Plan>> plans;
  for (const Problem& problem : problems) {
    const auto choices =
        settle(problem, [&](int rank) { return std::span<const Decision>(decisions[static_cast<std::size_t>(rank)]); });
    const Plan plan = emit(machine, problem, facts, choices,
                           [&](const std::string& pass, const Plan& after) { plans[pass].push_back(after); });
    CHECK(plans["message order"].back() == plan);
  }
  return plans;
}

}  // namespace

TEST_CASE("what the planner makes for all ranks of a machine verifies before and after the passes") {
  for (const int ranks : {2, 3, 5}) {
    for (const DType add : {DType::none, DType::f64}) {
      CAPTURE(ranks);
      CAPTURE(to_string(add));
      Machine machine = Machine::uniform(ranks, 1, 0, true);
      machine.constants.staged_slice = 1000;
      machine.constants.staged_slices = 3;
      const auto plans = planned(machine, "mpi:staged", Memory::device, add);
      const VerifyReport before = verify(plans.at("emit"));
      const VerifyReport after = verify(plans.at("message order"));
      INFO(before.text(), after.text());
      CHECK(before.ok());
      CHECK(after.ok());
      CHECK(before.commands == after.commands);
      for (const Plan& plan : plans.at("message order")) {
        std::map<std::int32_t, std::array<bool, 2>> kinds;  // by lane: messages, moves
        std::int64_t messages = 0;
        for (const Command& c : plan.commands) {
          const bool message = c.verb == Verb::send || c.verb == Verb::recv;
          kinds[c.lane][message ? 0 : 1] = true;
          messages += message ? 1 : 0;
        }
        CHECK(messages >= 2 * 4);  // links are cut, also the only one between two ranks
        for (const auto& [lane, kind] : kinds) CHECK(kind[0] != kind[1]);
      }
    }
  }
}

TEST_CASE("plans without background messages are the same before and after the passes") {
  const Machine apart = Machine::uniform(4, 2, 0, true);
  for (const auto& [path, memory] : {std::pair{"mpi", Memory::host},
                                     {"shared,mpi", Memory::host},
                                     {"nccl", Memory::device},
                                     {"peer,nccl", Memory::device},
                                     {"auto", Memory::host}}) {
    CAPTURE(path);
    const auto plans = planned(apart, path, memory, DType::none);
    CHECK(plans.at("emit") == plans.at("message order"));
    CHECK(verify(plans.at("emit")).ok());
  }
}
