// Lowering to a GPU program: what its tiles move, followed on the host, is what the strided copies say; and every step
// has its part.
#include "engines/gpu_program.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "plan/builder.hpp"

using namespace tasuki;

namespace {

// A task's lists, as the kernel reads them.
struct View {
  const std::byte* at;
  GpuTaskHeader header;
  View(const GpuProgram& program, const GpuTask& task) : at(program.bytes.data() + task.offset) {
    std::memcpy(&header, at, sizeof header);
  }
  template <class T>
  T get(std::int32_t offset, std::int32_t index) const {
    T value;
    std::memcpy(&value, at + offset + static_cast<std::size_t>(index) * sizeof(T), sizeof value);
    return value;
  }
};

// Moves what the step's tiles name, one unit after the other; returns how many units.
std::int64_t follow(const View& view, const GpuStep& step) {
  std::int64_t moved = 0;
  for (std::uint32_t tile = 0; tile < step.tiles; ++tile) {
    std::int32_t k = step.first_copy + step.copies - 1;
    while (view.get<GpuCopy>(view.header.copies, k).first_tile > tile) --k;
    const auto copy = view.get<GpuCopy>(view.header.copies, k);
    const std::uint32_t begin = (tile - copy.first_tile) * 32 * step.tile_units;
    for (std::uint32_t unit = begin; unit < begin + 32 * step.tile_units && unit < copy.units; ++unit) {
      std::int64_t src = copy.src_offset;
      std::int64_t dst = copy.dst_offset;
      std::uint32_t rest = unit;
      for (int d = 0; d < copy.dims; ++d) {
        const auto dim = view.get<GpuDim>(view.header.dims, copy.first_dim + d);
        const auto next = static_cast<std::uint32_t>((std::uint64_t{rest} * dim.magic) >> dim.shift);
        const std::uint32_t index = d + 1 < copy.dims ? rest - next * dim.count : rest;
        src += index * dim.src_stride;
        dst += index * dim.dst_stride;
        rest = next;
      }
      std::memcpy(step.dst.base + dst, step.src.base + src, std::size_t{1} << copy.log_unit);
      ++moved;
    }
  }
  return moved;
}

Program bound(Draft draft, const std::map<std::string, std::byte*>& memory) {
  Program program;
  program.plan = std::move(draft.plan);
  program.channels.resize(program.plan.commands.size());
  for (const auto& buffer : program.plan.buffers)
    program.where.push_back({memory.at(buffer.name), 0, 1, false, nullptr});
  return program;
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
    const Program program = bound(builder.finish(), {{"a", from.data()}, {"b", got.data()}});
    const GpuProgram lowered = lower(program, 16, true);
    REQUIRE(lowered.tasks[kPartStart | kPartWait].size() == 2);
    const View view(lowered, lowered.tasks[kPartStart | kPartWait][1]);
    const auto step = view.get<GpuStep>(view.header.steps, 0);
    follow(view, step);
    CHECK(got == expected);
  }
}

TEST_CASE("a plan's parts: a put sends in the start, its receiver waits in the wait, having told before") {
  std::uint64_t counters[4] = {};
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
  Draft draft = builder.finish();
  Program program;
  program.plan = std::move(draft.plan);
  program.channels.resize(program.plan.commands.size());
  std::size_t next = 0;
  alignas(16) std::byte memory[128];
  for (const auto& buffer : program.plan.buffers) {
    const bool counts = buffer.role == Role::signal;
    program.where.push_back({counts ? reinterpret_cast<std::byte*>(&counters[next++]) : memory, 0, 1, false, nullptr});
  }
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
  CHECK(lowered.direct);
  CHECK(lowered.messages.empty());
}
