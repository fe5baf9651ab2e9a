// What a single plan can get wrong by itself, one complaint at a time, and that extreme values do no harm.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <limits>

#include "plan_samples.hpp"

using namespace tasuki;

namespace {

/// Spoils rank 1 of a sound set and looks for a complaint with the words.
void complains(std::vector<Plan> plans, const std::function<void(Plan&)>& spoil, const std::string& words) {
  Plan plan = plans.at(1);
  REQUIRE(plan.complaints().empty());
  spoil(plan);
  std::string all;
  bool found = false;
  for (const std::string& complaint : plan.complaints()) {
    all += complaint + "\n";
    found |= complaint.find(words) != std::string::npos;
  }
  INFO("wanted: ", words, "\ngot: ", all);
  CHECK(found);
}

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("sound plans have no complaints") {
  for (const auto& [name, plans] : samples::all()) {
    CAPTURE(name);
    for (const Plan& plan : plans) CHECK(plan.complaints().empty());
  }
}

TEST_CASE("ranks and buffers") {
  const auto plans = samples::put_halo(3);
  complains(
      plans, [](Plan& p) { p.rank = 3; }, "belongs to rank 3");
  complains(
      plans, [](Plan& p) { p.ranks = 0; }, "for 0 ranks");
  complains(
      plans, [](Plan& p) { p.buffers[0].rank = -1; }, "outside 0..2");
  complains(
      plans, [](Plan& p) { p.buffers[0].name = ""; }, "has no name");
  complains(
      plans, [](Plan& p) { p.buffers[2] = p.buffers[1]; }, "listed twice");
  complains(
      plans, [](Plan& p) { p.buffers[1].bytes = -8; }, "has -8 bytes");
  complains(
      plans, [](Plan& p) { p.buffers[1].ring = 0; }, "0 copies (ring)");
  complains(
      plans, [](Plan& p) { p.buffers[1].per_epoch = 1; }, "is no signal but has per_epoch 1");
  complains(
      plans, [](Plan& p) { p.buffers[3].per_epoch = 0; }, "advances by 0 per epoch");
  complains(
      plans, [](Plan& p) { p.buffers[3].ring = 2; }, "is a counter");
  complains(
      plans, [](Plan& p) { p.buffers[1].role = static_cast<Role>(77); }, "unknown role 77");
}

TEST_CASE("indices of commands") {
  const auto plans = samples::put_halo(3);
  complains(
      plans, [](Plan& p) { p.commands[1].src = 99; }, "rank 1 #1 put -> 2 names buffer 99 as source");
  complains(
      plans, [](Plan& p) { p.commands[1].dst = -1; }, "names buffer -1 as destination");
  complains(
      plans, [](Plan& p) { p.commands[0].dst = 0; }, "has no use for a destination");
  complains(
      plans,
      [](Plan& p) {
        p.commands[1].first_copy = 3;
        p.commands[1].copy_count = 2;
      },
      "names copies 3 to 4 of 4");
  complains(
      plans, [](Plan& p) { p.commands[1].copy_count = -1; }, "names copies");
  complains(
      plans, [](Plan& p) { p.commands[1].copy_count = 0; }, "names copies");
  complains(
      plans, [](Plan& p) { p.commands[0].copy_count = 1; }, "does not copy but names 1 copies");
  complains(
      plans, [](Plan& p) { p.commands[1].first_dep = 1; }, "names dependencies");
  complains(
      plans, [](Plan& p) { p.commands[1].dep_count = 1; }, "names dependencies");
  complains(
      plans, [](Plan& p) { p.deps = {99}, p.commands[1].dep_count = 1; }, "depends on #99");
  complains(
      plans, [](Plan& p) { p.deps = {0}, p.commands[1].dep_count = 1; }, "of its own lane");
  complains(
      plans, [](Plan& p) { p.commands[1].path = -1; }, "names path -1 of 1");
  complains(
      plans, [](Plan& p) { p.commands[1].peer = 5; }, "names rank 5 of 3");
  complains(
      plans, [](Plan& p) { p.commands[1].verb = static_cast<Verb>(9); }, "unknown verb 9");
  complains(
      plans, [](Plan& p) { p.commands[1].dtype = DType::f32; }, "names the type f32");
}

TEST_CASE("lanes and loops") {
  const auto plans = samples::chain_broadcast();
  complains(
      plans, [](Plan& p) { p.commands[2].lane = 1; }, "returns to lane 0");
  complains(
      plans, [](Plan& p) { p.commands[0].lane = -1; }, "lanes count from 0");
  complains(
      plans, [](Plan& p) { p.commands[0].stage = -1; }, "stages count from 0");
  complains(
      plans, [](Plan& p) { p.commands[1].stage = 1; },
      "is in stage 1, but the command before it in its lane in stage 0");
  complains(
      plans, [](Plan& p) { p.commands[2].loop = -1; }, "returns to loop 0");
  complains(
      plans, [](Plan& p) { p.commands[4].loop = 0; }, "returns to loop 0");
  complains(
      plans, [](Plan& p) { p.commands[2].loop = 1; }, "names loop 1, but the plan has 1 loops");
  complains(
      plans, [](Plan& p) { p.loops[0].count = 0; }, "runs 0 times");
  complains(
      plans, [](Plan& p) { p.commands[2].dst_step = 65; }, "writes bytes 0 to 258, which leaves 'data' of rank 2");
  complains(
      plans, [](Plan& p) { p.commands[2].src_step = -64; }, "reads bytes -192 to 63");
  complains(
      plans, [](Plan& p) { p.commands[1].index = 1; }, "has indices 1 to 4");
  complains(
      plans, [](Plan& p) { p.commands[1].lag = -1; }, "has lag -1");
  complains(
      plans, [](Plan& p) { p.commands[1].credit = true; }, "has credit for no epochs");
  complains(
      plans, [](Plan& p) { p.commands[2].credit = true; }, "has credit; only a wait may");
}

TEST_CASE("roles and owners that do not suit the verb") {
  const auto plans = samples::put_halo(3);
  complains(
      plans, [](Plan& p) { p.commands[1].dst = 1; }, "puts into its own 'p' of rank 1");
  complains(
      plans, [](Plan& p) { p.commands[1].src = 0; }, "its source must be this rank's");
  complains(
      plans, [](Plan& p) { p.commands[1].verb = Verb::copy; }, "its destination must be this rank's");
  complains(
      plans, [](Plan& p) { p.commands[1].peer = 0; }, "peer is 0, but the other buffer is 'p' of rank 2");
  complains(
      plans, [](Plan& p) { p.buffers[2].role = Role::input; }, "which is an input");
  complains(
      plans, [](Plan& p) { p.commands[1].dst = 3; }, "only signal may");
  complains(
      plans, [](Plan& p) { p.commands[0].src = 0; }, "which is no signal but inout");
  complains(
      plans, [](Plan& p) { p.commands[2].dst = p.commands[0].src, p.commands[2].peer = 1; }, "must be the peer's");
  complains(
      plans, [](Plan& p) { p.commands[0].src = p.commands[2].dst; }, "which is not its own");
  complains(
      plans, [](Plan& p) { p.commands[0].bytes = -2; }, "moves nothing but has bytes -2");
  complains(
      plans, [](Plan& p) { p.commands[2].dst_step = 8; }, "moves nothing but has bytes 0, offset 0 and steps 0, 8");
  const auto messages = samples::message_halo(3);
  complains(
      messages, [](Plan& p) { p.commands[1].peer = 1; }, "needs another rank as its peer");
  complains(
      messages, [](Plan& p) { p.commands[1].src = 0; }, "a message starts and ends at home");
  complains(
      messages, [](Plan& p) { p.commands[1].offset = 8; }, "uses bytes 8 to 39, which leaves 'out right'");
  complains(
      messages, [](Plan& p) { p.commands[1].bytes = 0; }, "moves 0 bytes");
}

TEST_CASE("copies and expectations") {
  const auto plans = samples::put_halo(3);
  complains(
      plans, [](Plan& p) { p.commands[1].bytes = 31; }, "says that it moves 31 bytes, but its copies move 32");
  complains(
      plans, [](Plan& p) { p.copies[0].src_offset = 160; }, "reads bytes 160 to 311");
  complains(
      plans, [](Plan& p) { p.copies[0].dst_offset = -8; }, "writes bytes -8 to 143");
  complains(
      plans, [](Plan& p) { p.copies[0].dims[0].src_stride = -48; }, "reads bytes -112 to 39");
  complains(
      plans, [](Plan& p) { p.copies[0].ndims = 8; }, "has 8 dimensions");
  complains(
      plans, [](Plan& p) { p.copies[0].ndims = 0; }, "beyond its ndims");
  complains(
      plans, [](Plan& p) { p.copies[0].dims[0].count = 0; }, "move nothing");
  complains(
      plans, [](Plan& p) { p.copies[0].block = 0; }, "has block 0");
  complains(
      plans, [](Plan& p) { p.expects[0].dst = 0; }, "only this rank's buffers can be promised");
  complains(
      plans, [](Plan& p) { p.expects[0].src = 3; }, "only a user's input can be meant");
  complains(
      plans, [](Plan& p) { p.expects[0].src = -1; }, "names buffers -1 and 1");
  complains(
      plans, [](Plan& p) { p.buffers[1].role = Role::scratch; }, "only a user's output can be meant");
  complains(
      plans, [](Plan& p) { p.expects[0].copy_count = 9; }, "rank 1 expect 0 names copies");
  const auto sums = samples::reverse_add();
  complains(
      sums, [](Plan& p) { p.commands[1].dtype = DType::none; }, "names no number type");
  complains(
      sums, [](Plan& p) { p.copies[0].block = 6, p.commands[1].bytes = 24; }, "not a whole number of f64");
}

TEST_CASE("numbers near the limits of 64 bits are refused without overflow") {
  const auto plans = samples::chain_broadcast();
  for (const std::int64_t value : {kHuge, -kHuge, -kHuge - 1, std::int64_t{1} << 60, std::int64_t{1} << 59}) {
    complains(
        plans, [&](Plan& p) { p.copies[0].src_offset = value; }, "");
    complains(
        plans, [&](Plan& p) { p.copies[0].block = value; }, "");
    complains(
        plans, [&](Plan& p) { p.commands[2].src_step = value; }, "");
    complains(
        plans, [&](Plan& p) { p.loops[0].count = value; }, "");
    complains(
        plans,
        [&](Plan& p) {
          p.copies[0].ndims = 7, p.copies[0].dims.fill({value, value, value});
        },
        "");
    complains(
        plans,
        [&](Plan& p) {
          p.copies[0].ndims = 7, p.copies[0].dims.fill({value, 0, 0});
        },
        "");
    complains(
        samples::message_halo(2), [&](Plan& p) { p.commands[1].offset = value; }, "");
    complains(
        samples::message_halo(2), [&](Plan& p) { p.commands[1].bytes = value; }, "");
  }
}
