// Every algorithm of every collective: plans of all ranks are verified, on every path, with odd counts and islands.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collective_shapes.hpp"
#include "collectives/algorithm.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

// Every part of every rank's result was combined in one order by all that were promised it.
void check_equal_orders(const VerifyReport& report, std::int64_t bytes) {
  std::set<std::pair<std::int64_t, std::string>> orders;
  for (const ReductionOrder& order : report.orders) orders.emplace(order.bytes, order.order);
  std::int64_t sum = 0;
  for (const auto& [n, order] : orders) sum += n;
  CHECK(sum == bytes);  // parts with different orders lie beside each other, on every rank alike
}

}  // namespace

TEST_CASE("every algorithm of every collective is sound for 2 to 33 ranks, whatever the counts") {
  Random random(7);
  for (const CollectiveKind kind : all_collectives()) {
    REQUIRE(!algorithms_for(kind).empty());
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33}) {
        CollectiveShape shape = random_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        if (ranks > 12) shape.count = std::min<std::int64_t>(shape.count, 2 * ranks + 1);
        check(Machine::uniform(ranks, ranks, below(random, 3) == 0 ? std::min(3, ranks) : 0), shape);
      }
    }
  }
}

TEST_CASE("small collectives are sound on every path, in every form") {
  Random random(8);
  const std::vector<std::string> paths{
      "auto", "shared:put", "shared:pull", "shared:eager", "shared:read", "shared:put,shared:eager", "mpi"};
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (int i = 0; i < 40; ++i) {
        const int ranks = 2 + static_cast<int>(below(random, 6));
        CollectiveShape shape = random_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
        // Neither puts nor reads can add.
        const bool one_pass = shape.path == "shared:put" || shape.path == "shared:read";
        if (one_pass) shape.path += ",shared:eager";
        if (shape.path == "shared:pull") shape.shared = true;
        if (algorithm->settings != nullptr && below(random, 2) == 0) {
          if (algorithm->over_trees) {
            shape.trees = static_cast<int>(below(random, 4));
            shape.arity = static_cast<int>(below(random, 4));
          }
          shape.chunk = below(random, 2) == 0 ? 0 : 1 + below(random, 100);
        }
        check(Machine::uniform(ranks, ranks, 0), shape);
      }
    }
  }
}

TEST_CASE("a rank alone gets what it gives") {
  Random random(9);
  for (const CollectiveKind kind : all_collectives())
    for (int i = 0; i < 8; ++i) check(Machine::uniform(1, 1, 0), random_shape(kind, 1, random));
}

TEST_CASE("all ranks of an allreduce combine in the same order, in place or not") {
  for (const Algorithm* algorithm : algorithms_of(CollectiveKind::allreduce)) {
    for (const int ranks : {2, 3, 5, 8, 11, 16}) {
      for (const bool in_place : {false, true}) {
        CollectiveShape shape;
        shape.count = 4 * ranks;
        shape.type = DType::f64;
        shape.in_place = in_place;
        shape.algorithm = algorithm->name;
        const VerifyReport report = check(Machine::uniform(ranks, ranks, 0), shape);
        check_equal_orders(report, 8 * shape.count);
      }
    }
  }
}

TEST_CASE("who works in place is promised the ranks' order too: scans, and every ordered reduction") {
  for (const CollectiveKind kind : all_collectives()) {
    if (!reduces(kind)) continue;
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      if (!algorithm->in_order) continue;
      for (const int ranks : {2, 3, 4, 5, 7, 8, 9, 13}) {
        for (const int root : {0, ranks / 2, ranks - 1}) {
          if (root > 0 && !rooted(kind)) continue;
          CollectiveShape shape;
          shape.kind = kind;
          shape.algorithm = algorithm->name;
          shape.type = DType::i32_i32;
          shape.op = ReduceOp::own;
          shape.own = "composition";
          shape.count = 5;
          shape.root = root;
          shape.ordered = true;
          shape.in_place = true;
          const Machine machine = Machine::uniform(ranks, ranks, ranks % 2 == 0 ? 2 : 0);
          check(machine, shape);
          for (const Plan& one : plan(machine, shape).plans())
            for (const Expect& e : one.expects) CHECK((e.dtype == DType::none || e.in_order));
        }
      }
    }
  }
}

TEST_CASE("every algorithm of every collective is sound for 64 ranks on hosts of eight") {
  Random random(10);
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      if (algorithm->name == "bruck") continue;  // it has more lanes than the verifier follows: below
      const int ranks = 64;
      CollectiveShape shape = random_shape(kind, ranks, random);
      shape.algorithm = algorithm->name;
      shape.counts.clear();
      shape.count = 1 + below(random, 2);
      check(Machine::uniform(ranks, 8, 8), shape);
    }
  }
}

// Of 40 ranks the verifier follows all blocks together; of more, every fourth distance at a time.
TEST_CASE("bruck is sound for 40, 64, 65 and 72 ranks on hosts of eight") {
  for (const int ranks : {40, 64, 65, 72})
    for (int part = 0; part < (ranks == 40 ? 1 : 4); ++part) {
      CollectiveShape shape;
      shape.kind = CollectiveKind::alltoall;
      shape.algorithm = "bruck";
      shape.type = DType::u8;
      shape.count = 1;
      if (ranks > 40)
        for (int from = 0; from < ranks; ++from)
          for (int to = 0; to < ranks; ++to)
            shape.counts.push_back((to - from + ranks) % ranks % 4 == part ? 1 + (from + to) % 2 : 0);
      check(Machine::uniform(ranks, 8, 8), shape);
    }
}

TEST_CASE("1024 ranks: collectives whose steps are few are planned and predicted") {
  using Named = std::pair<CollectiveKind, std::string>;
  const Machine machine = Machine::uniform(1024, 8, 8);
  for (const auto& [kind, name] :
       {Named{CollectiveKind::broadcast, "binomial"}, Named{CollectiveKind::reduce, "binomial"},
        Named{CollectiveKind::allreduce, "doubling"}, Named{CollectiveKind::barrier, "dissemination"}}) {
    CollectiveShape shape;
    shape.kind = kind;
    shape.algorithm = name;
    shape.type = DType::f64;
    shape.count = kind == CollectiveKind::barrier ? 0 : 1000;
    CAPTURE(name);
    const Planned planned = plan(machine, shape);
    const Plan last = planned.plan(1023);
    CHECK(!last.commands.empty());
    const double seconds = planned.predict().seconds;
    // Ten messages deep, each as long as the slowest path takes at most, and as the quickest at least.
    shape.kind = CollectiveKind::broadcast;
    shape.algorithm = "binomial";
    shape.count = std::max<std::int64_t>(1, shape.count);
    const double one_message = plan(Machine::uniform(2, 1, 1), shape).predict().seconds;
    CHECK(seconds > one_message);
    CHECK(seconds < 10 * 4 * one_message);
  }
}

TEST_CASE("chunks stay symbolic: a pipelined reduction's plan does not grow with the vector") {
  CollectiveShape shape;
  shape.kind = CollectiveKind::reduce;
  shape.algorithm = "trees";
  shape.type = DType::f64;
  shape.trees = 2;
  shape.arity = 1;
  shape.chunk = 4100;  // made a multiple of the element
  shape.path = "shared:eager";
  const Machine machine = Machine::uniform(5, 5, 0);
  shape.count = 5001;
  const Plan small = plan(machine, shape).plan(2);
  check(machine, shape);
  shape.count = 500001;
  const Plan large = plan(machine, shape).plan(2);
  CHECK(small.commands.size() == large.commands.size());
  CHECK(large.loops.size() == 2);
}

TEST_CASE("the choice is told, with all candidates, and can be forced; a name that is none is an error") {
  CollectiveShape shape;
  shape.type = DType::f32;
  const Machine machine = Machine::uniform(4, 4, 0);
  std::set<std::string> chosen;
  for (const std::int64_t count : {1, 1000, 1000000}) {
    shape.count = count;
    const CollectivePlan layout(machine, shape);
    chosen.insert(layout.algorithm().name);
    const std::string text = plan(machine, shape).explain(0);
    for (const char* name : {"exchange ", "doubling ", "ring ", "halving ", "<- chosen", "us predicted"})
      CHECK(text.find(name) != std::string::npos);
    CHECK(text.find("algorithm: " + layout.algorithm().name) != std::string::npos);
  }
  CHECK(chosen.size() > 1);
  // The fewest bytes for the largest.
  CHECK((chosen.contains("direct") || chosen.contains("halving") || chosen.contains("ring")));
  shape.algorithm = "exchange";
  CHECK(plan(machine, shape).explain(1).find("algorithm: exchange, which was asked for") != std::string::npos);
  shape.algorithm = "rings";
  CHECK_THROWS_WITH_AS(
      plan(machine, shape),
      "there is no algorithm 'rings' for allreduce; give one of auto, exchange, direct, doubling, relay, ring, "
      "halving, hierarchical",
      Error);
}

TEST_CASE("collectives that cannot be are refused") {
  const Machine machine = Machine::uniform(3, 3, 0);
  const auto complaint = [&](auto&& change) {
    CollectiveShape shape;
    shape.kind = CollectiveKind::gather;
    shape.type = DType::f64;
    shape.count = 2;
    change(shape);
    try {
      plan(machine, shape);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const auto has = [](const std::string& text, const char* words) {
    INFO(text);
    return text.find(words) != std::string::npos;
  };
  CHECK(complaint([](auto&) {}) == "none");
  CHECK(has(complaint([](auto& s) { s.root = 3; }), "argument 'root' is 3"));
  CHECK(has(complaint([](auto& s) { s.count = -1; }), "argument 'count' is -1"));
  CHECK(has(complaint([](auto& s) { s.count = std::int64_t{1} << 60; }), "more than can be moved"));
  CHECK(has(complaint([](auto& s) { s.counts = {1, 2}; }), "argument 'counts' has 2 entries"));
  CHECK(has(complaint([](auto& s) { s.counts = {1, -2, 3}; }), "argument 'counts' is -2 for block 1"));
  CHECK(has(complaint([](auto& s) { s.type = DType::none; }), "argument 'type'"));
  CHECK(has(complaint([](auto& s) {
              s.kind = CollectiveKind::allreduce;
              s.op = ReduceOp::bxor;
            }),
            "argument 'op' is bxor, which has no meaning for elements of f64"));
  CHECK(has(complaint([](auto& s) {
              s.kind = CollectiveKind::alltoall;
              s.in_place = true;
              s.counts = {1, 2, 3, 4, 5, 6, 7, 8, 9};
            }),
            "in place, rank 0 has 2 elements for rank 1, which has 4 for it"));
  CHECK(has(complaint([](auto& s) { s.kind = CollectiveKind::scan, s.counts = {1, 1, 1}; }), "has no blocks"));
}
