// Sums of 16-bit floats: every two are added in 32 bits and rounded to 16, in the brackets that the verifier names, by
// every algorithm.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "rank_test.hpp"
#include "tasuki/kernel/impl/reduce_ops.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kCount = 37;

// The element of a rank: numbers of which sums are not exact, and some that overflow on the way.
template <class Half>
Half element_of(int rank, std::int64_t i, int epoch) {
  const auto mixed = static_cast<std::uint32_t>(rank * 7919 + i * 104729 + epoch * 1299709);
  const float wide = i % 9 == 8 ? (rank % 2 == 0 ? 6e4F : -5e4F) : static_cast<float>(mixed % 20011) * 0.37F - 3000.0F;
  Half half{};
  element::from_f32(wide, half);
  return half;
}

// The value of `((0 1) 2)` for element i, from position `at` of the text on.
template <class Half>
Half value_of(const std::string& order, std::size_t& at, std::int64_t i, int epoch) {
  if (order[at] != '(') {
    std::size_t digits = 0;
    const int rank = std::stoi(order.substr(at), &digits);
    at += digits;
    return element_of<Half>(rank, i, epoch);
  }
  ++at;
  const Half left = value_of<Half>(order, at, i, epoch);
  REQUIRE(order[at] == ' ');
  ++at;
  const Half right = value_of<Half>(order, at, i, epoch);
  REQUIRE(order[at] == ')');
  ++at;
  Half sum{};
  element::from_f32(element::to_f32(left) + element::to_f32(right), sum);
  return sum;
}

template <class Half>
void check_sums(const Context& ctx, DType type, const std::string& algorithm) {
  CAPTURE(algorithm);
  std::vector<Half> in(kCount), out(kCount);
  CollectiveOptions options;
  options.algorithm = algorithm;
  Allreduce sum(ctx, in.data(), out.data(), kCount, type, ReduceOp::sum, options);
  const VerifyReport report = verify(sum);
  CHECK_MESSAGE(report.ok(), report.text());
  for (int epoch = 1; epoch < 4; ++epoch) {
    for (std::int64_t i = 0; i < kCount; ++i) in[static_cast<std::size_t>(i)] = element_of<Half>(ctx.rank(), i, epoch);
    sum.start();
    sum.wait();
    std::int64_t checked = 0;
    for (const ReductionOrder& order : report.orders) {
      if (order.rank != ctx.rank()) continue;
      for (std::int64_t i = order.offset / 2; i < (order.offset + order.bytes) / 2; ++i, ++checked) {
        std::size_t at = 0;
        const Half wanted = value_of<Half>(order.order, at, i, epoch);
        CHECK(out[static_cast<std::size_t>(i)].bits == wanted.bits);
      }
    }
    CHECK(checked == kCount);
  }
}

}  // namespace

RANK_TEST("sums of 16-bit floats are rounded once a bracket, and nowhere else, by every algorithm") {
  if (ctx.size() == 1 || ctx.size() > 8) return;  // nothing is combined; the verifier names no more than 256 orders
  for (const Algorithm* algorithm : algorithms_of(CollectiveKind::allreduce)) {
    check_sums<element::F16>(ctx, DType::f16, algorithm->name);
    check_sums<element::BF16>(ctx, DType::bf16, algorithm->name);
  }
}
