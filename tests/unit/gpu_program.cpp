// Lowering to a GPU program: what its tiles move, followed on the host, is what the strided copies say; and every step
// has its part.
#include "engines/gpu/program.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "engines/gpu/task.hpp"
#include "gpu_view.hpp"
#include "plan/builder.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

// A lane that takes 35 LL lines and, before or after, tells a credit.
Program receiver_of_lines(std::byte* memory, bool signals_first) {
  Builder builder("test", 0, 2);
  builder.set_path("peer:ll");
  const int a = builder.buffer("a", 0, Role::inout, 16 << 10);
  const int in = builder.buffer("in", 0, Role::scratch, 16 << 10, 2, Home::ll);
  const int credit = builder.counter("credit<0", 1, Home::device);
  StridedCopy copy;
  copy.block = 16 << 10;
  builder.begin_lane();
  if (signals_first) builder.signal(1, credit);
  builder.wait(1, builder.counter("filled<1", 0, Home::ll));
  builder.copy(1, in, a, std::array{copy}, 0, 0);
  if (!signals_first) builder.signal(1, credit);
  return bound(builder.finish(), memory);
}

}  // namespace

TEST_CASE("lowered tiles move exactly the bytes of random strided copies") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    StridedCopy copy;
    copy.block = std::array<std::int64_t, 8>{1, 2, 4, 8, 12, 16, 48, 1000}[random() % 8];
    copy.ndims = static_cast<std::int32_t>(random() % 4);
    std::int64_t src = copy.block;
    std::int64_t dst = copy.block;
    for (int d = copy.ndims - 1; d >= 0; --d) {
      const std::int64_t count = 1 + static_cast<std::int64_t>(random() % 9);
      copy.dims[static_cast<std::size_t>(d)] = {count, src + static_cast<std::int64_t>(random() % 3) * 4,
                                                dst + static_cast<std::int64_t>(random() % 3) * 4};
      src = copy.dims[static_cast<std::size_t>(d)].src_stride * count;
      dst = copy.dims[static_cast<std::size_t>(d)].dst_stride * count;
    }
    copy.src_offset = static_cast<std::int64_t>(random() % 33);
    copy.dst_offset = static_cast<std::int64_t>(random() % 33);
    std::vector<std::byte> from(static_cast<std::size_t>(src + 64));
    for (auto& byte : from) byte = static_cast<std::byte>(random());
    std::vector<std::byte> expected(static_cast<std::size_t>(dst + 64), std::byte{7});
    std::vector<std::byte> got = expected;
    select_copy(copy)(copy, from.data(), expected.data());

    Builder builder("test", 0, 1);
    builder.begin_lane();
    builder.set_path("self");
    const int a = builder.buffer("a", 0, Role::input, static_cast<std::int64_t>(from.size()));
    const int b = builder.buffer("b", 0, Role::output, static_cast<std::int64_t>(got.size()));
    builder.copy(0, a, b, std::array{copy}, 0, 0);
    const Program program =
        bound(builder.finish(), [&](const Buffer& buffer) { return buffer.name == "a" ? from.data() : got.data(); });
    const GpuProgram lowered = lower(program, 16, true);
    REQUIRE(lowered.tasks[kPartStart | kPartWait].size() == 2);
    const View view(lowered, lowered.tasks[kPartStart | kPartWait][1]);
    const auto step = view.get<GpuStep>(view.header.steps, 0);
    follow(view, step);
    CHECK(got == expected);
  }
}

TEST_CASE("a plan's parts: a put sends in the start, its receiver waits in the wait, having told before") {
  Builder builder("test", 0, 2);
  builder.set_path("peer:put");
  const int a = builder.buffer("a", 0, Role::inout, 64);
  const int b = builder.buffer("a", 1, Role::inout, 64);
  builder.begin_lane();
  builder.signal(1, builder.counter("ready<0", 1, Home::device));
  builder.wait(1, builder.counter("arrived<1", 0, Home::device));
  builder.begin_lane();
  StridedCopy copy;
  copy.block = 16;
  builder.wait(1, builder.counter("ready<1", 0, Home::device));
  builder.put(1, a, b, std::array{copy}, 0, 0);
  builder.signal(1, builder.counter("arrived<0", 1, Home::device));
  alignas(16) std::byte memory[128];
  const Program program = bound(builder.finish(), memory);
  const GpuProgram lowered = lower(program, 8, true);
  const auto verbs = [&](int parts) {
    std::string text;
    for (const GpuTask& task : lowered.tasks[parts]) {
      const View view(lowered, task);
      for (int s = 0; s < (view.header.copies - view.header.steps) / static_cast<int>(sizeof(GpuStep)); ++s) {
        text += std::string(to_string(view.get<GpuStep>(view.header.steps, s).verb)) + ' ';
      }
      text += "| ";
    }
    return text;
  };
  CHECK(verbs(kPartStart) == "signal | wait put signal | ");
  CHECK(verbs(kPartWait) == "wait | ");
  CHECK(verbs(kPartStart | kPartWait) == "signal wait | wait put signal | ");
  const auto signals_alone = [&](int task) {
    std::vector<int> alone;
    for (const auto& lane : View(lowered, lowered.tasks[kBoth][static_cast<std::size_t>(task)]).lanes()) {
      for (const GpuStep& step : lane) {
        if (step.verb == Verb::signal) alone.push_back(step.alone);
      }
    }
    return alone;
  };
  CHECK(signals_alone(0) == std::vector{1});  // ready: says nothing of this kernel's work
  CHECK(signals_alone(1) == std::vector{0});  // arrived
  CHECK(lowered.direct);
  CHECK(lowered.messages.empty());
}

TEST_CASE("a LL ring: what goes in comes out, in lines and parts of lines, and nothing is signalled") {
  std::mt19937 random(12);
  for (int round = 0; round < 100; ++round) {
    // A block and a scattered box go through the ring, each from the beginning of a line on.
    const std::int64_t block = std::array<std::int64_t, 5>{4, 8, 12, 16, 48}[random() % 5];
    const auto rows = static_cast<std::int64_t>(1 + random() % 70);
    StridedCopy first;
    first.block = 4 * static_cast<std::int64_t>(1 + random() % 300);
    StridedCopy second;
    second.src_offset = 1200;
    second.block = block;
    second.ndims = 1;
    second.dims[0] = {rows, block + 4 * static_cast<std::int64_t>(random() % 3), block};
    second.dst_offset = (first.block + kLLLineData - 1) / kLLLineData * kLLLineData;
    constexpr std::size_t kBytes = 6000;
    std::vector<std::byte> from(kBytes);
    for (auto& byte : from) byte = static_cast<std::byte>(random());
    std::vector<std::byte> ring(8192);
    std::vector<std::byte> to(kBytes);

    Builder builder("test", 0, 2);
    builder.set_path("peer:ll");
    const std::int64_t bytes = second.dst_offset + rows * block;
    const int a = builder.buffer("a", 0, Role::input, kBytes);
    const int b = builder.buffer("b", 0, Role::output, kBytes);
    const int out = builder.buffer("out", 1, Role::scratch, bytes, 2, Home::ll);
    const int in = builder.buffer("in", 0, Role::scratch, bytes, 2, Home::ll);
    builder.begin_lane();
    builder.put(1, a, out, std::array{first, second}, 0, 0);
    builder.signal(1, builder.counter("filled<0", 1, Home::ll));
    builder.begin_lane();
    builder.wait(1, builder.counter("filled<1", 0, Home::ll));
    std::array back{first, second};
    for (auto& copy : back) std::swap(copy.src_offset, copy.dst_offset);
    std::swap(back[1].dims[0].src_stride, back[1].dims[0].dst_stride);
    builder.copy(1, in, b, back, 0, 0);
    const Program program = bound(builder.finish(), [&](const Buffer& buffer) {
      return buffer.name == "a" ? from.data() : buffer.name == "b" ? to.data() : ring.data();
    });
    const GpuProgram lowered = lower(program, 16, true);
    const auto& tasks = lowered.tasks[kPartStart | kPartWait];
    REQUIRE(tasks.size() == 3);
    for (const std::size_t t : {1, 2}) {
      const View view(lowered, tasks[t]);
      REQUIRE(view.lanes().front().size() == 1);  // no signal, no wait
      const auto step = view.get<GpuStep>(view.header.steps, 0);
      CHECK(step.ll_side == (t == 1 ? kLLTarget : kLLSource));
      follow(view, step);
    }
    std::vector<std::byte> expected(kBytes);
    for (const auto& copy : {first, second}) {
      for (std::int64_t row = 0; row < (copy.ndims == 0 ? 1 : rows); ++row) {
        const std::int64_t at = copy.src_offset + row * copy.dims[0].src_stride * copy.ndims;
        std::memcpy(expected.data() + at, from.data() + at, static_cast<std::size_t>(copy.block));
      }
    }
    CHECK(to == expected);
    CHECK(lowered.tasks[kPartStart].size() == 2);
    CHECK(lowered.tasks[kPartWait].size() == 2);
  }
}

TEST_CASE("lines spread over blocks that nobody else needs, but not those of a lane that may not be shared") {
  std::vector<std::byte> memory(64 << 10);
  const Program program = receiver_of_lines(memory.data(), false);
  CHECK(lower(program, 132, true).blocks[kBoth] == 1 + 20);  // and that of the lanes that move nothing
  CHECK(lower(program, 132, false).blocks[kBoth] == 1 + 1);
}

TEST_CASE("what a lane tells first is told by a thread, so that the lane may be shared whoever can add") {
  std::vector<std::byte> memory(64 << 10);
  const Program program = receiver_of_lines(memory.data(), true);
  for (const bool atomics : {true, false}) {
    const GpuProgram lowered = lower(program, 132, atomics);
    CHECK(lowered.blocks[kBoth] == 1 + 20);
    CHECK(lowered.blocks[kPartStart] == 1);  // the credit is told when the exchange begins
    GpuTaskHeader header;
    std::memcpy(&header, lowered.bytes.data() + lowered.tasks[kBoth][0].offset, sizeof header);
    CHECK(header.lanes == 1);
    GpuStep step;
    std::memcpy(&step, lowered.bytes.data() + lowered.tasks[kBoth][0].offset + header.steps, sizeof step);
    CHECK(step.verb == Verb::signal);
    CHECK(step.alone == 1);
  }
}

TEST_CASE("tiles are dealt out in whole rounds of all warps, and the rest evenly") {
  for (const std::int64_t units : {1, 31, 4096, 9000, 70000, 1000000}) {
    for (const std::int64_t blocks : {1, 3, 132}) {
      TaskDraft task;
      task.steps.resize(3);
      StridedCopy copy;
      copy.block = 16 * units;
      for (GpuStep& step : task.steps) {
        step.verb = Verb::copy;
        step.awaited = 1;  // each is dealt out by itself
        step.first_copy = static_cast<std::int32_t>(task.copies.size());
        step.copies = 1;
        task.add_copy(copy, Located{}, Located{}, 0);
      }
      task.cut(blocks);
      std::uint32_t next = 0;
      for (const GpuStep& step : task.steps) {
        CHECK(step.tile_rows <= kTileRows);
        CHECK(step.tiles * step.tile_rows * 32 >= units);
        CHECK((step.tiles - 1) * step.tile_rows * 32 < units);
        const std::int64_t rest = step.tiles - step.rounds * kGpuWarps * blocks;
        CHECK(rest == step.share * blocks + step.more);
        CHECK(rest < kGpuWarps * blocks);
        CHECK(step.first_block == next);
        next = (next + step.more) % static_cast<std::uint32_t>(blocks);
      }
    }
  }
}

TEST_CASE("moves that follow each other are dealt out together, each between its own buffers") {
  std::mt19937 random(13);
  for (int round = 0; round < 50; ++round) {
    constexpr std::size_t kBytes = 8192;
    constexpr int kMoves = 5;
    const int told = static_cast<int>(random() % (kMoves + 1));  // before this one somebody is told something
    std::vector<std::vector<std::byte>> memory(std::size_t{2} * kMoves, std::vector<std::byte>(kBytes));
    std::vector<std::vector<std::byte>> expected(kMoves, std::vector<std::byte>(kBytes));
    Builder builder("test", 0, 2);
    builder.set_path("self");
    builder.begin_lane();
    for (int n = 0; n < kMoves; ++n) {
      auto& from = memory[static_cast<std::size_t>(2 * n)];
      for (auto& byte : from) byte = static_cast<std::byte>(random());
      const auto name = std::to_string(n);
      const int a = builder.buffer("from" + name, 0, Role::input, kBytes);
      const int b = builder.buffer("to" + name, 0, Role::output, kBytes);
      StridedCopy copy;
      copy.block = 4 * static_cast<std::int64_t>(1 + random() % 8);
      copy.ndims = 1;
      copy.dims[0] = {static_cast<std::int64_t>(1 + random() % 100), copy.block + 4, copy.block};
      if (n == told) builder.signal(1, builder.counter("told", 1, Home::device));
      builder.copy(0, a, b, std::array{copy}, 0, 0);
      select_copy(copy)(copy, from.data(), expected[static_cast<std::size_t>(n)].data());
    }
    std::size_t next = 0;
    const Program program = bound(builder.finish(), [&](const Buffer&) { return memory[next++].data(); });
    const GpuProgram lowered = lower(program, 3, true);
    const View view(lowered, lowered.tasks[kBoth].back());
    const auto steps = view.lanes().front();
    std::vector<std::int32_t> followers;
    for (std::size_t s = 0; s < steps.size(); s += 1 + static_cast<std::size_t>(steps[s].followers)) {
      if (steps[s].verb == Verb::copy) followers.push_back(steps[s].followers);
      if (steps[s].tiles > 0) follow(view, steps[s]);
      for (std::int32_t k = 1; k <= steps[s].followers; ++k) CHECK(steps[s + static_cast<std::size_t>(k)].tiles == 0);
    }
    const bool in_two = told > 0 && told < kMoves;
    CHECK(followers == (in_two ? std::vector{told - 1, kMoves - told - 1} : std::vector{kMoves - 1}));
    for (std::size_t n = 0; n < kMoves; ++n) CHECK(memory[2 * n + 1] == expected[n]);
  }
}

TEST_CASE("of few blocks each goes to the task that would else be the last to end") {
  std::vector<std::byte> memory(std::size_t{1} << 20);
  Builder builder("test", 0, 2);
  builder.set_path("peer:ll");
  const int a = builder.buffer("a", 0, Role::inout, 1 << 20);
  const int out = builder.buffer("out", 1, Role::scratch, 1 << 18, 1, Home::ll);
  StridedCopy copy;
  copy.block = 90 << 10;  // 192 lines
  builder.begin_lane();
  builder.put(1, a, out, std::array{copy}, 0, 0);
  builder.signal(1, builder.counter("filled<0", 1, Home::ll));
  builder.begin_lane();
  copy.block = 30 << 10;  // 60 rows
  copy.dst_offset = 1 << 19;
  builder.copy(0, a, a, std::array{copy}, 0, 0);
  const Program program = bound(builder.finish(), memory.data());
  const GpuProgram few = lower(program, 13, true);
  CHECK(few.blocks[kBoth] == 13);
  CHECK(few.tasks[kBoth][2].first_block - few.tasks[kBoth][1].first_block == 9);
  CHECK(few.blocks[kBoth] - few.tasks[kBoth][2].first_block == 3);  // with two they would take two rounds, and longest
  CHECK(lower(program, 132, true).blocks[kBoth] > 30);
}

TEST_CASE("a copy from end to end of a field of many GB is cut where the kernel's numbers end") {
  constexpr std::int64_t kFar = std::int64_t{3} << 30;
  StridedCopy copy;
  copy.block = 4;
  copy.ndims = 2;
  copy.dims[0] = {9, kFar, 8};
  copy.dims[1] = {2, 16, 4};
  CHECK(true_extent(copy) == 8 * kFar + 16 + 4);
  CHECK(!fits_lines(copy, false));
  TaskDraft task;
  task.add_copy(copy, Located{}, Located{}, 0);
  CHECK(task.copies.size() > 1);
  std::map<std::int64_t, std::int64_t> moved;  // where each word goes
  for (const GpuCopy& part : task.copies) {
    for (std::uint32_t n = 0; n < part.units; ++n) {
      std::int64_t at[2] = {part.src_offset, part.dst_offset};
      std::uint32_t rest = n;
      for (int d = 0; d < part.dims; ++d) {
        const GpuDim& dim = task.dims[static_cast<std::size_t>(part.first_dim + d)];
        const std::uint32_t index = d + 1 < part.dims ? rest % dim.count : rest;
        rest /= dim.count;
        at[0] += std::int64_t{4} * static_cast<std::int32_t>(index * static_cast<std::uint32_t>(dim.src_stride));
        at[1] += std::int64_t{4} * static_cast<std::int32_t>(index * static_cast<std::uint32_t>(dim.dst_stride));
      }
      moved[at[0]] = at[1];
    }
  }
  CHECK(moved.size() == 18);
  for (const auto& [src, dst] : moved) CHECK(dst == src / kFar * 8 + src % kFar / 4);
}

TEST_CASE("where sending and receiving are worth more blocks than there may be, all blocks do one after the other") {
  constexpr std::int64_t kBytes = 64 << 10;
  std::vector<std::byte> memory(2 * kBytes);
  Builder builder("test", 0, 2);
  builder.set_path("peer:eager");
  const int a = builder.buffer("a", 0, Role::inout, 2 * kBytes);
  const int out = builder.buffer("out", 1, Role::scratch, kBytes, 1, Home::device);
  const int in = builder.buffer("in", 0, Role::scratch, kBytes, 1, Home::device);
  StridedCopy copy;
  copy.block = kBytes;
  builder.begin_lane();
  builder.put(1, a, out, std::array{copy}, 0, 0);
  builder.signal(1, builder.counter("filled<0", 1, Home::device));
  builder.begin_lane();
  builder.wait(1, builder.counter("filled<1", 0, Home::device));
  builder.copy(1, in, a, std::array{copy}, 0, 0);
  const Program program = bound(builder.finish(), memory.data());
  const GpuProgram few = lower(program, 8, true);
  REQUIRE(few.rounds[kBoth].size() == 2);
  CHECK(few.tasks[kBoth].size() == 4);  // each round begins with the lanes that move nothing
  CHECK(few.rounds[kBoth][0].blocks == few.blocks[kPartStart]);
  CHECK(few.rounds[kBoth][1].first_task == 2);
  CHECK(few.rounds[kBoth][1].last_task == 4);
  CHECK(few.blocks[kBoth] == std::max(few.blocks[kPartStart], few.blocks[kPartWait]));
  const GpuProgram many = lower(program, 132, true);
  CHECK(many.rounds[kBoth].size() == 1);
  CHECK(many.tasks[kBoth].size() == 3);
}

TEST_CASE("scattered numbers in lines are sent by all blocks, then taken by all; rows are taken while they come") {
  constexpr std::int64_t kNumbers = 8 << 10;
  std::vector<std::byte> memory(64);  // only addresses are taken of it
  for (const bool scattered : {true, false}) {
    Builder builder("test", 0, 2);
    builder.set_path("peer:ll");
    const int a = builder.buffer("a", 0, Role::inout, 64 * kNumbers);
    const int out = builder.buffer("out", 1, Role::scratch, 4 * kNumbers, 2, Home::ll);
    const int in = builder.buffer("in", 0, Role::scratch, 4 * kNumbers, 2, Home::ll);
    StridedCopy pack;
    pack.block = 4 * kNumbers;
    StridedCopy unpack = pack;
    if (scattered) {
      pack.block = unpack.block = 4;
      pack.ndims = unpack.ndims = 1;
      pack.dims[0] = {kNumbers, 64, 4};
      unpack.dims[0] = {kNumbers, 4, 64};
    }
    builder.begin_lane();
    builder.put(1, a, out, std::array{pack}, 0, 0);
    builder.begin_lane();
    builder.wait(1, builder.counter("filled<1", 0, Home::ll));
    builder.copy(1, in, a, std::array{unpack}, 0, 0);
    const Program program = bound(builder.finish(), memory.data());
    CHECK(lower(program, 8, true).rounds[kBoth].size() == (scattered ? 2 : 1));
    CHECK(lower(program, 132, true).rounds[kBoth].size() == 1);
  }
}
