// Lowering lanes whose steps depend on each other: whatever the pace of the blocks and warps that share a lane, the
// bytes are those of the lane run in order; signals of loops are told when all blocks have ended what comes before.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>

#include "engines/gpu/order.hpp"
#include "gpu_view.hpp"
#include "plan/builder.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

constexpr std::int64_t kBytes = 40000;

StridedCopy piece(std::int64_t from, std::int64_t to, std::int64_t bytes) {
  StridedCopy copy;
  copy.src_offset = from;
  copy.dst_offset = to;
  copy.block = bytes;
  return copy;
}

/// A plan's buffers in this process; counters are words of their own.
struct Bound {
  std::vector<std::vector<std::byte>> memory;
  Program program;

  explicit Bound(Plan made, std::mt19937* random = nullptr) {
    program.plan = std::move(made);
    program.channels.resize(program.plan.commands.size());
    for (std::size_t i = 0; i < program.plan.buffers.size(); ++i) {
      memory.emplace_back(static_cast<std::size_t>(program.plan.buffers[i].bytes) + 16);
      for (std::byte& b : memory.back()) b = random != nullptr ? static_cast<std::byte>((*random)()) : std::byte{};
      program.where.push_back({memory.back().data(), 0, 1, false, program.plan.buffers[i].home == Home::ll, nullptr});
    }
  }
};

/// The lane in order.
void run_in_order(const Program& program) {
  const Plan& plan = program.plan;
  for (const LaneStep& step : unrolled(plan, 0, plan.commands.size())) {
    const Command& c = plan.commands[static_cast<std::size_t>(step.command)];
    if (c.verb != Verb::copy && c.verb != Verb::put && c.verb != Verb::reduce) continue;
    for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
      const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
      const auto f = c.verb == Verb::reduce ? select_reduce(copy, c.dtype, c.op) : select_copy(copy);
      f(copy, program.where[static_cast<std::size_t>(c.src)].base + step.round * c.src_step,
        program.where[static_cast<std::size_t>(c.dst)].base + step.round * c.dst_step);
    }
  }
}

/// One task as the kernel's `run_lane` runs it, a random warp of a random block at a time.
class Blocks {
 public:
  Blocks(const View& view, std::uint32_t blocks, std::mt19937& random)
      : view_(view),
        steps_(view.lanes().front()),
        blocks_(blocks),
        movers_(kGpuWarps - (view.header.signaller != 0 ? 1 : 0)),
        random_(random),
        warps_(blocks * kGpuWarps) {
    for (std::uint32_t w = 0; w < warps_.size(); ++w) warps_[w].turn = w % kGpuWarps;
  }

  /// False if nobody could go on.
  bool run() {
    for (int idle = 0; idle < 100000; ++idle) {
      if (std::ranges::all_of(warps_, [&](const Warp& w) { return w.step == steps_.size(); })) return true;
      if (advance(static_cast<std::uint32_t>(random_() % warps_.size()))) idle = 0;
    }
    return false;
  }
  std::map<std::int32_t, std::uint32_t> ends;  ///< blocks that have ended a step

 private:
  enum Gate { before, move, after };
  struct Warp {
    std::size_t step = 0;
    Gate gate = before;
    std::uint32_t turn = 0;
  };

  bool advance(std::uint32_t w) {
    Warp& warp = warps_[w];
    if (warp.step == steps_.size()) return false;
    const GpuStep& step = steps_[warp.step];
    const std::uint32_t block = w / kGpuWarps;
    const bool tells = w % kGpuWarps >= movers_;
    const bool telling = step.verb == Verb::signal || step.verb == Verb::reduce || step.awaited != 0;
    if (tells && warp.gate != after) {
      warp.gate = static_cast<Gate>(warp.gate + 1);
      return true;
    }
    if (warp.gate == before) {
      if (step.deps > 0 || step.verb == Verb::wait) {
        for (const std::int32_t dep : view_.deps(step)) {
          if (ends[dep] < blocks_) return false;
        }
        if (!together(block, warp, movers_)) return false;
      }
      warp.gate = move;
      return true;
    }
    if (warp.gate == move) {
      if (step.tiles > 0) deal(block, w % kGpuWarps, warp, step);
      warp.gate = after;
      return true;
    }
    if (telling) {
      if (!together(block, warp, kGpuWarps)) return false;
      if (w % kGpuWarps == (movers_ < kGpuWarps ? movers_ : 0) && step.awaited != 0) ++ends[step.end];
    }
    warp.step += 1 + static_cast<std::size_t>(step.followers) + static_cast<std::size_t>(step.joined);
    warp.gate = before;
    return true;
  }

  /// Whether the first `count` warps of the block have come as far.
  bool together(std::uint32_t block, const Warp& warp, std::uint32_t count) const {
    return std::all_of(
        warps_.begin() + block * kGpuWarps, warps_.begin() + block * kGpuWarps + count,
        [&](const Warp& other) { return std::pair(other.step, other.gate) >= std::pair(warp.step, warp.gate); });
  }

  void deal(std::uint32_t block, std::uint32_t w, Warp& warp, const GpuStep& step) {
    for (std::uint32_t round = 0; round < step.rounds; ++round) {
      const std::uint32_t tile = (round * blocks_ + block) * movers_ + w;
      follow(view_, step, tile, tile + 1);
    }
    const std::uint32_t turn = (block + blocks_ - step.first_block) % blocks_;
    const std::uint32_t rest = step.rounds * movers_ * blocks_ + turn * step.share + std::min(turn, step.more);
    const std::uint32_t count = step.share + (turn < step.more ? 1 : 0);
    if (warp.turn < count) follow(view_, step, rest + warp.turn, rest + warp.turn + 1);
    if (step.keeps_turn == 0) warp.turn = (warp.turn + movers_ - count) % movers_;
  }

  const View& view_;
  std::vector<GpuStep> steps_;
  std::uint32_t blocks_;
  std::uint32_t movers_;  // warps of a block that move
  std::mt19937& random_;
  std::vector<Warp> warps_;
};

std::vector<GpuStep> lane_of(const GpuProgram& program) {
  return View(program, program.tasks[kBoth].back()).lanes().front();
}

}  // namespace

TEST_CASE("lanes of copies and reductions, in loops and not, give the bytes of the lane in order at any pace") {
  std::mt19937 random(31);
  int alike = 0, waits = 0, several = 0;
  for (int round = 0; round < 150; ++round) {
    Builder builder("test", 0, 1);
    builder.set_path("self");
    std::vector<int> buffers;
    for (int b = 0; b < 3; ++b)
      buffers.push_back(builder.buffer(std::string(1, static_cast<char>('a' + b)), 0, Role::scratch, kBytes));
    builder.begin_lane();
    const bool loops = round % 3 == 0;
    const std::int64_t size = 8 * static_cast<std::int64_t>(1 + random() % 800);
    if (loops) builder.begin_loop(4, 8 * static_cast<std::int64_t>(random() % 60));
    StridedCopy last = piece(0, 0, size);
    const auto moves = 2 + random() % 4;
    for (std::size_t m = 0; m < moves; ++m) {
      const auto from = random() % 3;
      const int src = buffers[from];
      const int dst = buffers[(from + 1 + random() % 2) % 3];
      StridedCopy copy = last;
      if (random() % 2 == 0)
        copy =
            piece(8 * static_cast<std::int64_t>(random() % 900), 8 * static_cast<std::int64_t>(random() % 900), size);
      if (random() % 4 == 0) {
        copy.block = 8;
        copy.ndims = 1;
        copy.dims[0] = {size / 8, 8 * static_cast<std::int64_t>(1 + random() % 3),
                        8 * static_cast<std::int64_t>(1 + random() % 3)};
      }
      last = copy;
      const std::int64_t step = builder.user_step();
      if (random() % 3 == 0) {
        builder.copy(0, src, dst, std::array{copy}, step, step);
      } else {
        builder.reduce(0, src, dst, std::array{copy}, step, random() % 2 == 0 ? step : 0, DType::u64,
                       random() % 2 == 0 ? ReduceOp::sum : ReduceOp::product);
      }
    }
    if (loops) builder.end_loop();
    Bound work(builder.finish(), &random);
    if (!verify(std::vector{work.program.plan}).ok()) continue;  // copies that share a command and overlap
    const auto before = work.memory;
    const auto most = static_cast<int>(2 + random() % 5);
    const GpuProgram lowered = lower(work.program, most, true);
    const auto& tasks = lowered.tasks[kBoth];
    REQUIRE(tasks.size() == 2);
    const auto blocks = static_cast<std::uint32_t>(lowered.blocks[kBoth] - tasks[1].first_block);
    run_in_order(work.program);
    auto expected = work.memory;
    for (std::size_t b = 0; b < before.size(); ++b) std::ranges::copy(before[b], work.memory[b].begin());
    const View view(lowered, tasks[1]);
    Blocks pace(view, blocks, random);
    REQUIRE(pace.run());
    CHECK((work.memory == expected));
    several += blocks > 1 ? 1 : 0;
    for (const GpuStep& step : lane_of(lowered)) {
      alike += step.keeps_turn;
      waits += step.deps;
    }
  }
  // All of it occurred, or the test would show nothing.
  CHECK(several > 50);
  CHECK(alike > 10);
  CHECK(waits > 50);
}

TEST_CASE(
    "reductions of the same elements are dealt out alike, others wait, and what does not touch them does neither") {
  const auto steps_of = [](std::int64_t to, int blocks) {
    Builder builder("test", 0, 1);
    builder.set_path("self");
    const int a = builder.buffer("a", 0, Role::input, kBytes);
    const int b = builder.buffer("b", 0, Role::inout, kBytes);
    // In rows: what is one block would become one step.
    const auto rows = [](std::int64_t from, std::int64_t into) {
      StridedCopy copy = piece(from, into, 8000);
      copy.ndims = 1;
      copy.dims[0] = {2, 8004, 8000};
      return copy;
    };
    builder.begin_lane();
    builder.reduce(0, a, b, std::array{rows(0, 0)}, 0, 0, DType::f32);
    builder.reduce(0, a, b, std::array{rows(8, to)}, 0, 0, DType::f32);
    Bound work(builder.finish());
    const GpuProgram lowered = lower(work.program, blocks, true);
    CHECK(lowered.cooperative == (to == 4));
    CHECK(lowered.blocks[kBoth] == blocks);
    return lane_of(lowered);
  };
  auto steps = steps_of(0, 4);
  CHECK(steps[0].keeps_turn == 1);
  CHECK(steps[1].first_block == steps[0].first_block);
  CHECK(steps[1].deps == 0);
  steps = steps_of(4, 4);
  CHECK(steps[0].keeps_turn == 0);
  CHECK(steps[0].awaited == kAwaited);
  CHECK(steps[1].deps == 1);
  steps = steps_of(16000, 4);
  CHECK(steps[0].awaited == 0);
  CHECK(steps[1].deps == 0);
}

TEST_CASE("one block's threads pass a barrier instead of waiting for each other's end") {
  Builder builder("test", 0, 1);
  builder.set_path("self");
  const int a = builder.buffer("a", 0, Role::input, kBytes);
  const int b = builder.buffer("b", 0, Role::inout, kBytes);
  builder.begin_lane();
  builder.copy(0, a, b, std::array{piece(0, 0, 128)}, 0, 0);
  builder.reduce(0, a, b, std::array{piece(0, 0, 64)}, 0, 0, DType::f32);
  Bound work(builder.finish());
  const auto steps = lane_of(lower(work.program, 8, true));
  CHECK(steps[0].awaited == kInBlock);
  CHECK(steps[1].deps == 0);
}

TEST_CASE(
    "a copy and the reductions of the same elements are one step, after what they wait for, if nobody waits for less") {
  for (const bool awaited : {false, true}) {
    CAPTURE(awaited);
    Builder builder("test", 0, 2);
    builder.set_path("self");
    const int a = builder.buffer("a", 0, Role::input, kBytes);
    const int b = builder.buffer("b", 0, Role::output, kBytes);
    const int c = builder.buffer("c", 0, Role::output, kBytes);
    const int ring = builder.buffer("ring", 0, Role::scratch, kBytes);
    builder.begin_lane();
    const int first = builder.copy(0, a, b, std::array{piece(0, 0, 4096)}, 0, 0);
    builder.wait(1, builder.counter("filled<1", 0, Home::device));
    builder.reduce(1, ring, b, std::array{piece(0, 0, 4096)}, 0, 0, DType::f32);
    builder.reduce(0, a, b, std::array{piece(8192, 0, 4096)}, 0, 0, DType::f32);
    builder.begin_lane();
    const int other = builder.copy(0, b, c, std::array{piece(0, 0, 4096)}, 0, 0);
    builder.depend(other, awaited ? first : 3);
    Bound work(builder.finish());
    const GpuProgram lowered = lower(work.program, 8, true);
    const auto steps = View(lowered, lowered.tasks[kBoth][1]).lanes().front();
    REQUIRE(steps.size() == 4);
    CHECK(steps[0].verb == (awaited ? Verb::copy : Verb::wait));
    if (awaited) continue;
    CHECK(steps[1].joined == 2);
    CHECK(steps[1].begins == 1);
    CHECK(steps[1].awaited == kAwaited);
    CHECK(steps[1].end == 3);
    CHECK(steps[2].tiles == 0);
    CHECK(steps[3].tiles == 0);
  }
}

TEST_CASE("strided faces of one field that lie between each other do not wait") {
  Builder builder("test", 0, 1);
  builder.set_path("self");
  const int a = builder.buffer("a", 0, Role::inout, kBytes);
  builder.begin_lane();
  for (const std::int64_t column : {0, 8}) {
    StridedCopy copy = piece(column + 16, column, 8);
    copy.ndims = 1;
    copy.dims[0] = {1000, 32, 32};
    builder.reduce(0, a, a, std::array{copy}, 0, 0, DType::f64);
  }
  Bound work(builder.finish());
  const GpuProgram lowered = lower(work.program, 8, true);
  CHECK(!lowered.cooperative);
  CHECK(lane_of(lowered)[1].deps == 0);
}

TEST_CASE("a pipelined reduction: a step a round, signals told by a thread once all blocks have ended the round") {
  constexpr std::int64_t kRounds = 5, kChunk = 16000;
  for (const std::int64_t chunk : {kChunk, std::int64_t{16}}) {
    CAPTURE(chunk);
    Builder builder("test", 0, 2);
    builder.set_path("peer:some");
    const int in = builder.buffer("in", 0, Role::scratch, kRounds * chunk);
    const int sum = builder.buffer("sum", 0, Role::inout, kRounds * chunk);
    const int out = builder.buffer("sum", 1, Role::inout, kRounds * chunk);
    builder.begin_lane();
    builder.begin_loop(kRounds, chunk);
    const int wait = builder.wait(1, builder.counter("arrived", 0, Home::device));
    builder.reduce(1, in, sum, std::array{piece(0, 0, chunk)}, chunk, chunk, DType::f32);
    const int put = builder.put(1, sum, out, std::array{piece(0, 0, chunk)}, chunk, chunk);
    const int signal = builder.signal(1, builder.counter("forwarded", 1, Home::device));
    builder.end_loop();
    Bound work(builder.finish());
    const GpuProgram lowered = lower(work.program, 8, true);
    const auto steps = lane_of(lowered);
    const bool shared = chunk == kChunk;
    CHECK((lowered.blocks[kBoth] > 2) == shared);
    std::vector<std::uint64_t> waited;
    for (const GpuStep& step : steps) {
      if (step.command == wait) waited.push_back(step.index);
    }
    CHECK(waited == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
    CHECK(steps.size() == kRounds * (shared ? 3 : 4));
    const View light(lowered, lowered.tasks[kBoth][0]);
    const auto told = light.lanes();
    CHECK(told.size() == (shared ? 1 : 0));
    if (!shared) continue;
    REQUIRE(told[0].size() == kRounds);
    std::vector<std::int32_t> ends;  // of the puts
    for (const GpuStep& step : steps) {
      if (step.command == put) ends.push_back(step.end);
      if (step.command == put) CHECK(step.awaited == kAwaited);
    }
    for (std::size_t r = 0; r < kRounds; ++r) {
      CHECK(told[0][r].command == signal);
      CHECK(told[0][r].index == r);
      CHECK(light.deps(told[0][r]) == std::vector{ends[r]});
    }
    // The last round ends with the command, the others have ends of their own.
    CHECK(ends.back() == put);
    const auto commands = static_cast<std::int32_t>(work.program.plan.commands.size());
    for (std::size_t r = 0; r + 1 < kRounds; ++r) {
      CHECK(lowered.more_ends.at(static_cast<std::size_t>(ends[r] - commands)) == put);
    }
  }
}

TEST_CASE(
    "what a lane adds up and sends on in chunks is stored in both places at once, and a warp of each block tells") {
  std::mt19937 random(32);
  for (const std::int64_t chunk : {std::int64_t{1} << 16, (std::int64_t{1} << 16) + 4}) {
    CAPTURE(chunk);
    const bool wide = chunk % 16 == 0;
    constexpr std::int64_t kRounds = 3;
    Builder builder("test", 0, 2);
    builder.set_path("peer:some");
    const int own = builder.buffer("own", 0, Role::input, kRounds * chunk);
    const int in = builder.buffer("in", 0, Role::scratch, kRounds * chunk);
    const int sum = builder.buffer("sum", 0, Role::inout, kRounds * chunk);
    const int out = builder.buffer("sum", 1, Role::inout, kRounds * chunk);
    builder.begin_lane();
    builder.wait(1, builder.counter(Purpose::credit, 0, 0, 1, Home::device), 1, true);
    builder.begin_loop(kRounds, chunk);
    builder.copy(-1, own, sum, std::array{piece(0, 0, chunk)}, chunk, chunk);
    builder.wait(1, builder.counter("arrived", 0, Home::device));
    builder.reduce(1, in, sum, std::array{piece(0, 0, chunk)}, chunk, chunk, DType::u32);
    builder.put(1, sum, out, std::array{piece(0, 0, chunk)}, chunk, chunk);
    builder.signal(1, builder.counter("forwarded", 1, Home::device));
    builder.end_loop();
    Bound work(builder.finish(), &random);
    const auto before = work.memory;
    const GpuProgram lowered = lower(work.program, 9, true, static_cast<int>(kGpuWarps), {}, nullptr, true);
    const auto& tasks = lowered.tasks[kBoth];
    REQUIRE(tasks.size() == 2);
    const View view(lowered, tasks[1]);
    CHECK(view.header.signaller == 1);
    int sends = 0;
    for (const GpuStep& step : lane_of(lowered)) {
      sends += step.sends;
      if (step.sends == 0) continue;
      CHECK(step.joined == 2);
      CHECK(step.begins == 1);
      CHECK(step.flat == 1);
    }
    CHECK(sends == (wide ? kRounds : 0));
    run_in_order(work.program);
    const auto expected = work.memory;
    for (std::size_t b = 0; b < before.size(); ++b) std::ranges::copy(before[b], work.memory[b].begin());
    const auto blocks = static_cast<std::uint32_t>(lowered.blocks[kBoth] - tasks[1].first_block);
    CHECK(blocks > 1);
    Blocks pace(view, blocks, random);
    REQUIRE(pace.run());
    for (const int b : {sum, out})
      CHECK((work.memory[static_cast<std::size_t>(b)] == expected[static_cast<std::size_t>(b)]));
  }
}

TEST_CASE("what the kernel cannot do is refused") {
  const auto refused = [](auto make, const std::string& words) {
    Builder builder("test", 0, 2);
    builder.set_path("some");
    make(builder);
    Bound work(builder.finish());
    std::string message;
    try {
      lower(work.program, 8, true);
    } catch (const Error& error) {
      message = error.what();
    }
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
  };
  refused(
      [](Builder& b) {
        const int a = b.buffer("a", 0, Role::input, 480);
        const int out = b.buffer("out", 0, Role::scratch, 480, 1, Home::ll);
        b.begin_lane();
        b.reduce(1, a, out, std::array{piece(0, 0, 480)}, 0, 0, DType::f32);
      },
      "command #0 reduces sum of f32 into LL lines");
  refused(
      [](Builder& b) {
        const int a = b.buffer("a", 0, Role::input, 8 * kGpuSteps + 8);
        const int s = b.buffer("s", 0, Role::scratch, 8 * kGpuSteps + 8);
        b.begin_lane();
        b.begin_loop(kGpuSteps + 1, 8);
        b.copy(0, a, s, std::array{piece(0, 0, 8)}, 8, 8);
        b.end_loop();
      },
      "more than 16384 commands with chunk loops unrolled");
}
