// Reductions in chunk loops: the builder's steps, the executor's rounds, and the verifier say the same.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <random>

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kRounds = 5;
constexpr std::int64_t kCount = 3;  // elements of a round

/// A plan on this process's memory.
struct Bound {
  std::vector<std::vector<double>> memory;
  Program program;

  explicit Bound(Plan made) {
    program.plan = std::move(made);
    const Plan& plan = program.plan;
    program.channels.resize(plan.commands.size());
    for (const Buffer& b : plan.buffers) {
      auto& bytes = memory.emplace_back(static_cast<std::size_t>(b.bytes) / sizeof(double));
      program.where.push_back({reinterpret_cast<std::byte*>(bytes.data()), 0, 1, false, false, nullptr});
    }
    for (const Command& c : plan.commands) {
      program.first_function.push_back(static_cast<std::int32_t>(program.functions.size()));
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
        program.functions.push_back(c.verb == Verb::reduce ? select_reduce(copy, c.dtype, c.op) : select_copy(copy));
      }
    }
  }
};

StridedCopy row(std::int64_t stride) {
  StridedCopy copy;
  copy.block = sizeof(double);
  copy.ndims = 1;
  copy.dims[0] = {kCount, stride * 8, 8};
  return copy;
}

}  // namespace

TEST_CASE("a reduction in a loop moves both sides each round, each by its own step") {
  Builder builder("test", 0, 1);
  builder.set_path("self");
  const int a = builder.buffer("a", 0, Role::input, 8 * 2 * kCount * kRounds);
  const int b = builder.buffer("b", 0, Role::input, 8 * kCount * kRounds);
  const int out = builder.buffer("out", 0, Role::output, 8 * kCount * kRounds);
  builder.begin_lane();
  builder.begin_loop(kRounds, 8 * kCount);
  const std::int64_t step = builder.user_step();
  builder.copy(0, b, out, std::array{row(1)}, step, step);
  const int reduce = builder.reduce(0, a, out, std::array{row(2)}, 2 * step, step, DType::f64, ReduceOp::max);
  builder.end_loop();
  StridedCopy whole;
  whole.block = 8;
  whole.ndims = 1;
  whole.dims[0] = {kCount * kRounds, 8, 8};
  builder.expect(b, out, std::array{whole}, DType::none);
  whole.dims[0] = {kCount * kRounds, 16, 8};
  builder.expect(a, out, std::array{whole}, DType::f64, ReduceOp::max, true);
  Bound work(builder.finish());
  const Plan& plan = work.program.plan;
  CHECK(plan.commands[static_cast<std::size_t>(reduce)].src_step == 2 * 8 * kCount);
  CHECK(plan.commands[static_cast<std::size_t>(reduce)].dst_step == 8 * kCount);
  CHECK(plan_from_text(to_text(plan)) == plan);
  CHECK(plan_from_json(to_json(plan)) == plan);
  const VerifyReport report = verify(std::vector{plan});
  INFO(report.text());
  CHECK(report.ok());

  std::mt19937 random(3);
  const auto& memory = work.memory;
  const std::array<double*, 2> inputs{work.memory[0].data(), work.memory[1].data()};
  const std::array sizes{memory[0].size(), memory[1].size()};
  const double* got = memory[2].data();
  Executor executor(std::move(work.program));
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t k = 0; k < sizes[i]; ++k) inputs[i][k] = static_cast<double>(random() % 1000);
    }
    executor.begin();
    REQUIRE(executor.progress());
    for (std::size_t k = 0; k < kCount * kRounds; ++k) CHECK(got[k] == std::max(inputs[0][2 * k], inputs[1][k]));
  }
}

TEST_CASE("a loop that reduces into the same place each round adds up all rounds, in order") {
  Builder builder("test", 0, 1);
  builder.set_path("self");
  const int a = builder.buffer("a", 0, Role::input, 8 * kCount * kRounds);
  const int out = builder.buffer("out", 0, Role::inout, 8 * kCount);
  builder.begin_lane();
  builder.begin_loop(kRounds, 8 * kCount);
  builder.reduce(0, a, out, std::array{row(1)}, builder.user_step(), 0, DType::f64);
  builder.end_loop();
  for (std::int64_t r = 0; r < kRounds; ++r) {
    StridedCopy part = row(1);
    part.src_offset = r * 8 * kCount;
    builder.expect(a, out, std::array{part}, DType::f64, ReduceOp::sum, true);
  }
  Bound work(builder.finish());
  const VerifyReport report = verify(std::vector{work.program.plan});
  INFO(report.text());
  CHECK(report.ok());
  REQUIRE(report.orders.size() == 1);
  CHECK(report.orders[0].order == "(((((0 0) 0) 0) 0) 0)");
  Plan shorter = work.program.plan;
  shorter.loops[0].count -= 1;
  const VerifyReport found = verify(std::vector{shorter});
  REQUIRE(found.problems.size() == 1);
  CHECK(found.problems[0].find("'a' of rank 0 offset 96 is not combined; the last to write was rank 0 #0 reduce") !=
        std::string::npos);

  double* const in = work.memory[0].data();
  double* const sum = work.memory[1].data();
  Executor executor(std::move(work.program));
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::array<double, kCount> want{};
    for (std::int64_t k = 0; k < kCount; ++k)
      want[static_cast<std::size_t>(k)] = sum[k] = 0.1 * static_cast<double>(k + epoch);
    for (std::int64_t k = 0; k < kCount * kRounds; ++k) {
      in[k] = 1.0 / static_cast<double>(k + epoch + 1);
      want[static_cast<std::size_t>(k % kCount)] += in[k];
    }
    executor.begin();
    REQUIRE(executor.progress());
    CHECK(std::memcmp(sum, want.data(), sizeof want) == 0);
  }
}
