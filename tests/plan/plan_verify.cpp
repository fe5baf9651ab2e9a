// Sound plans verify: every form of a ring halo, a pipelined broadcast, an ordered addition.
#include <doctest/doctest.h>

#include "plan_samples.hpp"

using namespace tasuki;

TEST_CASE("every sample plan verifies, for few and for many epochs") {
  for (const auto& [name, plans] : samples::all()) {
    CAPTURE(name);
    for (const int epochs : {0, 1, 2, 7}) {
      const VerifyReport report = verify(plans, epochs);
      INFO(report.text());
      CHECK(report.ok());
      CHECK(report.commands > 0);
      CHECK(report.bytes > 0);
    }
  }
}

TEST_CASE("the report counts unrolled commands and the bytes of one epoch") {
  const VerifyReport report = verify(samples::chain_broadcast(), 3);
  // Rank 0: 1 + 4 * 2, rank 1: 1 + 4 * 3 + 1, rank 2: 1 + 4.
  CHECK(report.commands == 3 * (9 + 14 + 5));
  CHECK(report.bytes == 2 * 256);
  CHECK(report.text().find("verified: 84 commands") != std::string::npos);
}

TEST_CASE("a ring of n copies allows a credit that is n epochs old, and no older") {
  for (const std::int32_t ring : {1, 2, 3}) {
    for (std::int32_t lag = 1; lag <= 4; ++lag) {
      CAPTURE(ring);
      CAPTURE(lag);
      CHECK(verify(samples::eager_transfer(ring, lag)).ok() == (lag <= ring));
      // In a halo what the neighbour sent in the epoch before proves that it has ended the one before that.
      CHECK(verify(samples::eager_halo(2, ring, lag)).ok() == (lag <= ring || ring > 1));
    }
  }
}

TEST_CASE("an alternating pair allows ready to be one epoch old, and no older") {
  for (const std::int32_t lag : {0, 1, 2, 3}) {
    CAPTURE(lag);
    CHECK(verify(samples::alternating_transfer(lag)).ok() == (lag <= 1));
  }
}

TEST_CASE("dependencies order the lanes of one rank and join what they know") {
  // Two local copies, field to scratch to halo, in two lanes.
  for (const bool ordered : {true, false}) {
    samples::Hand hand("local", 0, 1);
    const auto field = hand.buffer("p", 0, Role::inout, samples::kField);
    const auto between = hand.buffer("s", 0, Role::scratch, samples::kField);
    const auto first = hand.move(Verb::copy, field, between, {samples::column(4, 2)});
    hand.lane(1);
    const auto second = hand.move(Verb::copy, between, field, {samples::column(2, 0)});
    if (ordered) hand.after(second, {first});
    hand.expect(field, field, {samples::column(4, 0)});
    const VerifyReport report = verify(std::vector<Plan>{hand.plan});
    CHECK(report.ok() == ordered);
    if (!ordered) CHECK(samples::tells(report, {"rank 0 #1 copy reads", "'s' of rank 0", "rank 0 #0 copy writes"}));
  }
}

TEST_CASE("an addition into a copied value starts from the copy") {
  samples::Hand hand("sum", 0, 1);
  const auto a = hand.buffer("a", 0, Role::input, samples::kField);
  const auto b = hand.buffer("b", 0, Role::input, samples::kField);
  const auto out = hand.buffer("out", 0, Role::output, samples::kField);
  hand.move(Verb::copy, a, out, {samples::column(1, 1)});
  hand.reduce(b, out, {samples::column(2, 1)}, DType::f64);
  hand.expect(b, out, {samples::column(2, 1)}, DType::f64);
  hand.expect(a, out, {samples::column(1, 1)});
  const VerifyReport report = verify(std::vector<Plan>{hand.plan});
  INFO(report.text());
  CHECK(report.ok());
}

TEST_CASE("ranks without commands take part") {
  std::vector<Plan> plans(4);
  for (std::int32_t r = 0; r < 4; ++r) plans[r] = samples::Hand("nothing", r, 4).plan;
  CHECK(verify(plans).ok());
  CHECK_FALSE(verify({}).ok());
}
