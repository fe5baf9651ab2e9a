// Reductions by way of partial results: plans that combine every contribution once verify, whatever the algorithm, and
// say in which order; plans that do not are told by rank, command and buffer.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "plan_samples.hpp"

using namespace tasuki;
using samples::nth;
using samples::tells;

namespace {

std::vector<std::pair<std::string, std::vector<Plan>>> allreduces() {
  std::vector<std::pair<std::string, std::vector<Plan>>> list;
  for (const std::int32_t ranks : {3, 4, 5}) {
    list.emplace_back("tree", samples::tree_allreduce(ranks));
    list.emplace_back("doubling", samples::doubling_allreduce(ranks));
    list.emplace_back("ring", samples::ring_allreduce(ranks));
  }
  return list;
}

std::set<std::string> orders_of(const VerifyReport& report, std::int32_t rank) {
  std::set<std::string> orders;
  for (const ReductionOrder& o : report.orders) {
    if (o.rank == rank) orders.insert(o.order);
  }
  return orders;
}

std::int64_t bytes_of(const VerifyReport& report, std::int32_t rank) {
  std::int64_t bytes = 0;
  for (const ReductionOrder& o : report.orders) bytes += o.rank == rank ? o.bytes : 0;
  return bytes;
}

/// One byte more in front of everything that is copied, so that cells are bytes and no element lies at a whole one.
void shift_by_a_byte(std::vector<Plan>& plans) {
  for (Plan& plan : plans) {
    for (Buffer& b : plan.buffers) b.bytes += b.role == Role::signal ? 0 : 1;
    for (StridedCopy& c : plan.copies) ++c.src_offset, ++c.dst_offset;
    for (Command& c : plan.commands) c.offset += c.verb == Verb::send || c.verb == Verb::recv ? 1 : 0;
  }
}

}  // namespace

TEST_CASE("allreduces by tree, doubling and ring verify, and all ranks get the same brackets") {
  for (auto& [name, plans] : allreduces()) {
    CAPTURE(name);
    CAPTURE(plans.size());
    for (const bool bytewise : {false, true}) {
      if (bytewise) shift_by_a_byte(plans);
      const VerifyReport report = verify(plans, 3);
      INFO(report.text());
      CHECK(report.ok());
      const auto orders = orders_of(report, 0);
      CHECK(orders.size() == (name == "ring" ? plans.size() : 1));
      for (std::int32_t r = 0; r < std::ssize(plans); ++r) {
        CHECK(orders_of(report, r) == orders);
        CHECK(bytes_of(report, r) == plans[r].buffers[1].bytes - (bytewise ? 1 : 0));
      }
    }
  }
}

TEST_CASE("the order is told in brackets of ranks") {
  const auto tree = verify(samples::tree_allreduce(5));
  CHECK(orders_of(tree, 3) == std::set<std::string>{"(((0 1) (2 3)) 4)"});
  const auto doubling = verify(samples::doubling_allreduce(5));
  CHECK(orders_of(doubling, 4) == std::set<std::string>{"(((0 4) 1) (2 3))"});
  const auto ring = verify(samples::ring_allreduce(3));
  CHECK(orders_of(ring, 1) == std::set<std::string>{"((0 1) 2)", "(0 (1 2))", "((0 2) 1)"});
  REQUIRE(ring.orders.size() == 9);
  CHECK(ring.orders[0] == ReductionOrder{0, "out", 0, 40, "((0 1) 2)"});
}

TEST_CASE("an order that is demanded must be kept") {
  // Rank 0 adds what rank 1 has added to rank 2's: 0, 1, 2.
  auto plans = samples::chain_reduce(3);
  const VerifyReport report = verify(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(report.orders == std::vector{ReductionOrder{0, "out", 0, 40, "(0 (1 2))"}});
  std::swap(plans[0].expects[1], plans[0].expects[2]);
  CHECK(
      tells(verify(plans), {"rank 0 expect 0: 40 bytes of 'out' of rank 0", "contribution 1 is 'in' of rank 1 offset 0",
                            "where the order promises 'in' of rank 2 offset 0"}));
  for (Expect& e : plans[0].expects) e.in_order = false;
  CHECK(verify(plans).ok());
}

TEST_CASE("a contribution that is dropped is named, with who wrote last") {
  auto tree = samples::tree_allreduce(5);
  samples::idle(tree[2], nth(tree[2], Verb::reduce, 0));
  CHECK(tells(verify(tree), {"rank 0 expect 0: 40 bytes of 'out' of rank 0", "'in' of rank 3 offset 0 is not combined",
                             "the last to write was rank 0 #"}));
  auto ring = samples::ring_allreduce(4);
  samples::idle(ring[1], nth(ring[1], Verb::reduce, 0));
  CHECK(tells(verify(ring), {"rank 3 expect", "'out' of rank 3", "'in' of rank 0", "is not combined"}));
  auto doubling = samples::doubling_allreduce(3);
  samples::idle(doubling[0], nth(doubling[0], Verb::reduce, 0));
  CHECK(tells(verify(doubling), {"rank 1 expect 0", "'in' of rank 2 offset 0 is not combined"}));
}

TEST_CASE("a contribution that is combined twice is named, with who did it") {
  auto tree = samples::tree_allreduce(4);
  const std::int32_t at = nth(tree[0], Verb::reduce, 1);
  tree[0].commands.insert(tree[0].commands.begin() + at, tree[0].commands[at]);
  CHECK(tells(verify(tree),
              {"rank 3 expect 0", "'out' of rank 3",
               "'in' of rank 2 offset 0 is combined twice, by rank 0 #" + std::to_string(at + 1) + " reduce"}));
  // Both have the sum of ranks 0 and 1 when rank 2 adds it for the second time.
  auto doubling = samples::doubling_allreduce(4);
  Plan& plan = doubling[2];
  const std::int32_t second = nth(plan, Verb::reduce, 1);
  plan.commands.insert(plan.commands.begin() + second, plan.commands[second]);
  CHECK(tells(verify(doubling), {"rank 2 expect", "'out' of rank 2",
                                 "is combined twice, by rank 2 #" + std::to_string(second + 1) + " reduce"}));
}

TEST_CASE("one step with another operator or type spoils the result, and is named") {
  for (const bool type : {false, true}) {
    for (auto& [name, plans] : allreduces()) {
      CAPTURE(name);
      const std::int32_t at = nth(plans[0], Verb::reduce, 0);
      Command& c = plans[0].commands[at];
      (type ? c.dtype = DType::i64 : (c.op = ReduceOp::max, c.dtype));
      CHECK(
          tells(verify(plans),
                {"rank 2 expect", "'out' of rank 2", "hold a wrong result", "rank 0 #" + std::to_string(at) + " reduce",
                 type ? "takes the sum of i64" : "takes the max of f64", "the sum of f64 is promised"}));
    }
  }
}

TEST_CASE("elements that begin at another byte are told") {
  samples::Hand hand("sum", 0, 1);
  const auto a = hand.buffer("a", 0, Role::input, 24);
  const auto out = hand.buffer("out", 0, Role::inout, 24);
  StridedCopy copy;
  copy.block = 24;
  hand.reduce(a, out, {copy}, DType::f64);
  copy.block = 16;
  copy.src_offset = copy.dst_offset = 4;
  hand.expect(a, out, {copy}, DType::f64);
  CHECK(tells(verify(std::vector<Plan>{hand.plan}),
              {"rank 0 expect 0: 16 bytes of 'out' of rank 0 (from offset 4",
               "rank 0 #0 reduce takes the sum of f64, cut into elements at other bytes, where the sum of f64"}));
}

TEST_CASE("what is combined before it has come is told: as a race, or as bytes that nobody wrote") {
  auto ring = samples::ring_allreduce(3);
  const std::int32_t reduce = nth(ring[1], Verb::reduce, 0);
  std::swap(ring[1].commands[reduce], ring[1].commands[reduce - 1]);
  CHECK(tells(verify(ring), {"'slot 0' of rank 1", "rank 1 #" + std::to_string(reduce - 1) + " reduce",
                             "rank 0 #2 put -> 1", "nothing orders"}));
  // In one lane there is an order, but it is the wrong one.
  auto tree = samples::tree_allreduce(3);
  const std::int32_t early = nth(tree[0], Verb::reduce, 0);
  std::swap(tree[0].commands[early], tree[0].commands[early - 1]);
  const auto report = verify(tree);
  CHECK(tells(report, {"rank 2 expect", "epoch 1",
                       "bytes that nobody wrote are combined, which no expectation names, by "
                       "rank 0 #" +
                           std::to_string(early - 1) + " reduce"}));
}

TEST_CASE("a reduction over what the last epoch left is told as such") {
  // In a ring of one slot the second epoch finds the first one's contribution.
  samples::Hand hand("sum", 0, 1);
  const auto a = hand.buffer("a", 0, Role::input, 8);
  const auto b = hand.buffer("b", 0, Role::input, 8);
  const auto slot = hand.buffer("slot", 0, Role::scratch, 8);
  const auto out = hand.buffer("out", 0, Role::output, 8);
  StridedCopy cell;
  cell.block = 8;
  hand.move(Verb::copy, a, out, {cell});
  hand.reduce(slot, out, {cell}, DType::f64);
  hand.move(Verb::copy, b, slot, {cell});
  hand.expect(a, out, {cell});
  hand.expect(b, out, {cell}, DType::f64);
  std::vector<Plan> plans{hand.plan};
  auto report = verify(plans);
  CHECK(tells(report, {"epoch 1)", "bytes that nobody wrote are combined"}));
  // As does one that goes on adding to an accumulator that nobody clears.
  auto tree = samples::tree_allreduce(3);
  Plan& plan = tree[1];
  const std::int32_t fill = nth(plan, Verb::copy, 0);
  plan.commands[fill].verb = Verb::reduce;
  plan.commands[fill].dtype = DType::f64;
  report = verify(tree);
  CHECK(tells(report, {"rank 0 expect 0", "bytes that nobody wrote are combined"}));
}

TEST_CASE("a contribution of the epoch before is told as such") {
  auto plans = samples::chain_reduce(2);
  plans[0].commands[nth(plans[0], Verb::wait, 0)].lag = 1;  // right in the first epoch
  CHECK(
      tells(verify(plans), {"rank 0 expect 0", "'out' of rank 0", "epoch 2)",
                            "'in' of rank 1 offset 0 as it was in epoch 1 is combined instead of the value of epoch 2, "
                            "by rank 0 #2 reduce"}));
}

TEST_CASE("expectations of one byte must name one type and operator") {
  auto plans = samples::tree_allreduce(3);
  plans[1].expects[2].op = ReduceOp::product;
  CHECK(tells(verify(plans), {"rank 1 expect 2 promises 40 bytes of 'out' of rank 1", "as the product of f64",
                              "another expectation promises the sum of f64"}));
}

TEST_CASE("plans that reduce what has no meaning are complained about") {
  const auto complains = [](auto change, const std::string& words) {
    auto plans = samples::reverse_add();
    change(plans[1]);
    std::string all;
    for (const std::string& c : plans[1].complaints()) all += c + '\n';
    CAPTURE(all);
    CHECK(all.find(words) != std::string::npos);
  };
  complains([](Plan& p) { p.commands[1].op = ReduceOp::bor; },
            "rank 1 #1 reduce <- 0 names the operator bor, which is not defined for f64");
  complains([](Plan& p) { p.commands[1].op = static_cast<ReduceOp>(77); }, "names the operator 77");
  complains([](Plan& p) { p.commands[1].dtype = static_cast<DType>(77); }, "names no number type");
  complains([](Plan& p) { p.commands[0].op = ReduceOp::max; }, "does not reduce but names the operator max");
  complains([](Plan& p) { p.expects[0].op = ReduceOp::minloc; },
            "rank 1 expect 0 names the operator minloc, which is not defined for f64");
  complains([](Plan& p) { p.expects[0].dtype = DType::none, p.expects[0].in_order = true; },
            "has neither an operator nor an order");
}

TEST_CASE("neighbours with different numbers of contributions, combined in one run afterwards") {
  samples::Hand hand("sum", 0, 1);
  const auto a = hand.buffer("a", 0, Role::input, 32);
  const auto out = hand.buffer("out", 0, Role::inout, 32);
  const auto piece = [](std::int64_t offset, std::int64_t bytes) {
    StridedCopy copy;
    copy.src_offset = copy.dst_offset = offset;
    copy.block = bytes;
    return copy;
  };
  const auto b = hand.buffer("b", 0, Role::input, 32);
  const auto c = hand.buffer("c", 0, Role::input, 32);
  hand.reduce(a, out, {piece(0, 16)}, DType::f64);
  hand.reduce(b, out, {piece(16, 16)}, DType::f64);
  hand.reduce(a, out, {piece(16, 16)}, DType::f64);
  hand.reduce(c, out, {piece(0, 32)}, DType::f64);
  hand.expect(a, out, {piece(0, 32)}, DType::f64);
  hand.expect(b, out, {piece(16, 16)}, DType::f64);
  hand.expect(c, out, {piece(0, 32)}, DType::f64);
  const VerifyReport report = verify(std::vector<Plan>{hand.plan});
  INFO(report.text());
  CHECK(report.ok());
  CHECK(report.orders ==
        std::vector{ReductionOrder{0, "out", 0, 16, "((0 0) 0)"}, ReductionOrder{0, "out", 16, 16, "(((0 0) 0) 0)"}});
}

TEST_CASE("runs share a partial result, so that long vectors take no time") {
  auto plans = samples::tree_allreduce(4);
  constexpr std::int64_t kLong = std::int64_t{1} << 17;
  for (Plan& plan : plans) {
    for (Buffer& b : plan.buffers) b.bytes = kLong * 8;
    for (StridedCopy& c : plan.copies) c.block = kLong * 8;
    for (Command& c : plan.commands) c.bytes = kLong * 8;
  }
  // Cells of 8 bytes, for a last element by itself.
  for (Plan& plan : plans) {
    StridedCopy most = plan.copies[0], last = plan.copies[0];
    most.block -= 8, last.block = 8, last.src_offset = last.dst_offset = most.block;
    plan.copies[plan.expects[0].first_copy] = most;
    plan.expects.push_back(plan.expects[0]);
    plan.expects.back().first_copy = static_cast<std::int32_t>(plan.copies.size());
    plan.copies.push_back(last);
  }
  const VerifyReport report = verify(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(bytes_of(report, 2) == kLong * 8);
}
