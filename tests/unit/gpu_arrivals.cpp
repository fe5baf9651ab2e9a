// Lowering messages: those in the order of a stream have parts before and after them; those that a word tells of have a
// thread that asks and one that waits, in the ordinary parts.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "gpu_view.hpp"
#include "plan/builder.hpp"
#include "plan/passes/pass.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

class Enqueued final : public StreamChannel {
 public:
  void enqueue(Stream) override {}
};

// A part as text: tasks, their lanes and steps, a step as its verb, command, dependencies, and ! if others depend on
// it.
std::string text_of(const GpuProgram& program, int part) {
  std::string text;
  for (const GpuTask& task : program.tasks[part]) {
    const View view(program, task);
    for (const auto& lane : view.lanes()) {
      if (lane.empty()) continue;
      for (const GpuStep& step : lane) {
        text += std::string(to_string(step.verb)) + std::to_string(step.command);
        for (const auto dep : view.deps(step)) text += '<' + std::to_string(dep);
        text += step.awaited != 0 ? "! " : " ";
        CHECK((step.counter != nullptr) == (step.per_epoch == 1));
        CHECK((step.untraced != 0) == (step.verb == Verb::signal));
      }
      text += ", ";
    }
    text += "| ";
  }
  return text;
}

std::vector<const std::uint64_t*> counters_of(const GpuProgram& program, int part) {
  std::vector<const std::uint64_t*> counters;
  for (const auto& lane : View(program, program.tasks[part][0]).lanes()) {
    for (const GpuStep& step : lane) counters.push_back(step.counter);
  }
  return counters;
}

// Two words a message, in the order of the plan; none: it is work of the stream. Passes come first, as in an operation.
Program with_channels(Plan plan, const std::vector<std::uint64_t*>& words) {
  alignas(16) static std::byte memory[256];
  Program program;
  program.plan = std::move(plan);
  const bool in_background = std::find(words.begin(), words.end(), nullptr) == words.end();
  run_passes(program.plan, std::vector<bool>(program.plan.paths.size(), in_background));
  std::size_t next = 0;
  for (const Command& c : program.plan.commands) {
    Channel& channel = program.channels.emplace_back();
    if (c.verb != Verb::send && c.verb != Verb::recv) continue;
    std::uint64_t* const word = words[next++];
    if (word != nullptr) channel.thread = std::make_unique<WordChannel>(word);
    if (word == nullptr) channel.stream = std::make_unique<Enqueued>();
  }
  Located where;
  where.base = memory;
  program.where.assign(program.plan.buffers.size(), where);
  return program;
}

StridedCopy block(std::int64_t src, std::int64_t dst, std::int64_t bytes = 16) {
  StridedCopy copy;
  copy.src_offset = src;
  copy.dst_offset = dst;
  copy.block = bytes;
  return copy;
}

// #0 recv, #1 unpack; #2 pack, #3 send. What is sent may depend on what is received.
GpuProgram lowered(std::uint64_t* sent, std::uint64_t* received, bool forward = false) {
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 64);
  const int to = builder.buffer("to", 0, Role::output, 64);
  const int out = builder.buffer("out", 0, Role::scratch, 16, 1, Home::pinned);
  const int in = builder.buffer("in", 0, Role::scratch, 16, 1, Home::pinned);
  builder.begin_lane();
  builder.recv(1, in, 0, 16, 0, 0);
  const int unpacked = builder.copy(1, in, to, std::array{block(0, 0)}, 0, 0);
  builder.begin_lane();
  const int packed = builder.copy(1, from, out, std::array{block(0, 0)}, 0, 0);
  if (forward) builder.depend(packed, unpacked);
  builder.send(1, out, 0, 16, 0, 0);
  return lower(with_channels(builder.finish(), {received, sent}), 8, true);
}

}  // namespace

TEST_CASE("messages that a word tells of are asked for by one thread and waited for by another, in one kernel") {
  std::uint64_t words[4] = {};
  const GpuProgram program = lowered(&words[0], &words[2]);
  CHECK(program.direct);
  CHECK(program.messages.empty());
  CHECK(text_of(program, kBoth) == "signal0 , signal3<2 , wait0! , wait3 , | copy1<0 , | copy2! , | ");
  CHECK(counters_of(program, kBoth) == std::vector<const std::uint64_t*>{&words[3], &words[1], &words[2], &words[0]});
  // Those that look at the host are no threads of a warp with others.
  const auto lanes = View(program, program.tasks[kBoth][0]).lanes();
  REQUIRE(lanes.size() == 34);
  CHECK(lanes[1].size() == 1);
  CHECK(lanes[2].empty());
  CHECK(lanes[31].empty());
  CHECK(lanes[32].size() == 1);
  CHECK(text_of(program, kPartStart) == "signal0 , signal3<2 , | copy2! , | ");
  CHECK(text_of(program, kPartWait) == "wait0! , wait3 , | copy1<0 , | ");
}

TEST_CASE("a message that needs another is asked for when that has been unpacked") {
  std::uint64_t words[4] = {};
  const GpuProgram program = lowered(&words[0], &words[2], true);
  CHECK(text_of(program, kBoth) == "signal0 , signal3<2 , wait0! , wait3 , | copy1<0! , | copy2<1! , | ");
  CHECK(text_of(program, kPartStart) == "signal0 , | ");
  CHECK(text_of(program, kPartWait) == "signal3<2 , wait0! , wait3 , | copy1<0! , | copy2<1! , | ");
}

TEST_CASE("in a lane of several messages only those commands wait for a message that touch its bytes") {
  std::uint64_t words[8] = {};
  Builder builder("test", 0, 3);  // moves with two peers stay two commands
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 128);
  const int to = builder.buffer("to", 0, Role::output, 128);
  const int out = builder.buffer("out", 0, Role::scratch, 32, 1, Home::pinned);
  const int in = builder.buffer("in", 0, Role::scratch, 32, 1, Home::pinned);
  // The pass leaves lanes of #0 #1 two packs, #2 #3 their sends, #4 #5 two receives, #6 #7 #8 three unpacks.
  builder.begin_lane();
  builder.copy(1, from, out, std::array{block(0, 0)}, 0, 0);
  builder.send(1, out, 0, 16, 0, 0);
  builder.copy(1, from, out, std::array{block(16, 16)}, 0, 0);
  builder.send(1, out, 16, 16, 0, 0);
  const auto send_lane = [&](std::int64_t second) {
    builder.begin_lane();
    builder.recv(1, in, 0, 16, 0, 0);
    builder.copy(1, in, to, std::array{block(0, 0, 8)}, 0, 0);
    builder.copy(2, in, to, std::array{block(8, 8, 8)}, 0, 0);
    builder.recv(1, in, second, 16, 0, 0);
    builder.copy(1, in, to, std::array{block(second, 16)}, 0, 0);
  };
  SUBCASE("places of their own: all receives at once, packing goes on") {
    send_lane(16);
    const auto program = lower(with_channels(builder.finish(), {&words[0], &words[2], &words[4], &words[6]}), 8, true);
    CHECK(text_of(program, kBoth) ==
          "signal2<0 signal3<1 , signal4 signal5 , wait2 wait3 , wait4! wait5! , "
          "| copy0! copy1! , | copy6<4 copy7 copy8<5 , | ");
    CHECK(text_of(program, kPartStart) == "signal2<0 signal3<1 , signal4 signal5 , | copy0! copy1! , | ");
    CHECK(text_of(program, kPartWait) == "wait2 wait3 , wait4! wait5! , | copy6<4 copy7 copy8<5 , | ");
  }
  SUBCASE("the same place again: the second message waits until the first has been unpacked") {
    send_lane(0);
    const auto program = lower(with_channels(builder.finish(), {&words[0], &words[2], &words[4], &words[6]}), 8, true);
    CHECK(text_of(program, kPartStart) == "signal2<0 signal3<1 , signal4 , | copy0! copy1! , | ");
    CHECK(text_of(program, kPartWait) == "signal5<7<4 , wait2 wait3 , wait4! wait5! , | copy6<4 copy7! copy8<5 , | ");
  }
}

TEST_CASE("what has been received is sent on when it has arrived, though no copy is between") {
  std::uint64_t words[4] = {};
  Builder builder("test", 0, 3);
  builder.set_path("some messages");
  const int relay = builder.buffer("relay", 0, Role::scratch, 40, 1, Home::pinned);
  builder.begin_lane();
  builder.recv(1, relay, 0, 24, 0, 0);
  SUBCASE("the same bytes") {
    builder.send(2, relay, 16, 24, 0, 0);
    const auto program = lower(with_channels(builder.finish(), {&words[0], &words[2]}), 8, true);
    CHECK(text_of(program, kBoth) == "signal0 signal1<0 , wait0! wait1 , | ");
    CHECK(text_of(program, kPartStart) == "signal0 , | ");
    CHECK(text_of(program, kPartWait) == "signal1<0 , wait0! wait1 , | ");
  }
  SUBCASE("other bytes") {
    builder.send(2, relay, 24, 16, 0, 0);
    const auto program = lower(with_channels(builder.finish(), {&words[0], &words[2]}), 8, true);
    CHECK(text_of(program, kPartStart) == "signal0 signal1 , | ");
    CHECK(text_of(program, kPartWait) == "wait0 wait1 , | ");
  }
}

TEST_CASE("a lane that waits for a peer besides keeps its messages in its order") {
  std::uint64_t words[4] = {};
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 64);
  const int to = builder.buffer("to", 0, Role::output, 64);
  const int out = builder.buffer("out", 0, Role::scratch, 16, 1, Home::pinned);
  const int in = builder.buffer("in", 0, Role::scratch, 16, 1, Home::pinned);
  builder.begin_lane();
  builder.wait(1, builder.counter("ready<1", 0, Home::device));
  builder.copy(1, from, out, std::array{block(0, 0)}, 0, 0);
  builder.send(1, out, 0, 16, 0, 0);
  builder.recv(1, in, 0, 16, 0, 0);
  builder.copy(1, in, to, std::array{block(0, 0)}, 0, 0);
  const auto program = lower(with_channels(builder.finish(), {&words[0], &words[2]}), 8, true);
  CHECK(text_of(program, kBoth) == "signal2<1 signal3 , wait2! wait3! , | wait0 copy1! copy4<3<2 , | ");
  CHECK(text_of(program, kPartStart) == "| ");
  CHECK(text_of(program, kPartWait) == text_of(program, kBoth));
}

TEST_CASE("what depends on nothing that arrives belongs to the start, through any number of lanes") {
  std::uint64_t words[2] = {};
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 64);
  const int to = builder.buffer("to", 0, Role::inout, 64);
  const int out = builder.buffer("out", 0, Role::scratch, 16, 1, Home::pinned);
  builder.begin_lane();
  const int first = builder.copy(0, from, to, std::array{block(0, 0)}, 0, 0);
  builder.begin_lane();
  const int second = builder.copy(0, to, to, std::array{block(0, 16)}, 0, 0);
  builder.depend(second, first);
  builder.begin_lane();
  const int third = builder.copy(1, to, out, std::array{block(16, 0)}, 0, 0);
  builder.depend(third, second);
  builder.send(1, out, 0, 16, 0, 0);
  const auto program = lower(with_channels(builder.finish(), {&words[0]}), 8, true);
  CHECK(text_of(program, kPartStart) == "signal3<2 , | copy0! , | copy1<0! , | copy2<1! , | ");
  CHECK(text_of(program, kPartWait) == "wait3 , | ");
}

TEST_CASE("messages in the order of the stream are not waited for") {
  const GpuProgram program = lowered(nullptr, nullptr);
  CHECK(program.messages.size() == 2);
  CHECK(!program.direct);
  CHECK(text_of(program, kPartPack) == "| copy2 , | ");
  CHECK(text_of(program, kPartUnpack) == "| copy1 , | ");
  CHECK(program.in_line);
  CHECK(text_of(program, kBefore) == "| copy2 , | ");
  CHECK(text_of(program, kAfter) == "| copy1 , | ");
}

TEST_CASE("a message that needs another cannot stand in one line with it") {
  CHECK(!lowered(nullptr, nullptr, true).in_line);
}

TEST_CASE(
    "a copy engine's put stands in one line with what waits and signals for it, unless others are served beside") {
  for (const bool others : {false, true}) {
    CAPTURE(others);
    Builder builder("test", 0, 2);
    builder.set_path("some copies");
    const int from = builder.buffer("from", 0, Role::input, 64);
    const int to = builder.buffer("to", 1, Role::output, 64);
    if (others) {
      builder.begin_lane();
      builder.signal(1, builder.counter("ready<0", 1, Home::device));
      builder.wait(1, builder.counter("arrived<1", 0, Home::device));
    }
    builder.begin_lane();
    builder.wait(1, builder.counter("ready<1", 0, Home::device));
    const int put = builder.put(1, from, to, std::array{block(0, 0)}, 0, 0);
    builder.signal(1, builder.counter("arrived<0", 1, Home::device));
    Program bound = with_channels(builder.finish(), {});
    bound.channels[static_cast<std::size_t>(put)].stream = std::make_unique<Enqueued>();
    const GpuProgram program = lower(bound, 8, true);
    CHECK(program.messages == std::vector{put});
    CHECK(program.in_line == !others);
    CHECK(program.direct == others);
  }
}

TEST_CASE("staging keeps its thread blocks beside copying that could use them all") {
  std::uint64_t words[2] = {};
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const std::int64_t face = 1 << 20;
  const std::int64_t bulk = 64 << 20;
  const int from = builder.buffer("from", 0, Role::input, bulk);
  const int to = builder.buffer("to", 0, Role::output, bulk);
  const int out = builder.buffer("out", 0, Role::scratch, face, 1, Home::pinned);
  builder.begin_lane();
  builder.copy(1, from, out, std::array{block(0, 0, face)}, 0, 0);
  builder.send(1, out, 0, face, 0, 0);
  builder.begin_lane();
  builder.copy(0, from, to, std::array{block(0, 0, bulk)}, 0, 0);
  const GpuProgram program = lower(with_channels(builder.finish(), {&words[0]}), 132, true);
  const auto& tasks = program.tasks[kBoth];
  REQUIRE(tasks.size() == 3);  // threads, packing, copying
  CHECK(tasks[2].first_block - tasks[1].first_block == 16);
  CHECK(program.blocks[kBoth] - tasks[2].first_block == 132 - 17);
}
