// Option `tune`: candidates run while an operation is made. The user's memory stays as it is, all ranks keep the same,
// and what is kept is right.
#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

std::vector<double> numbers(std::int64_t count, double first) {
  std::vector<double> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), first);
  return all;
}

bool has(const std::string& text, const char* words) {
  INFO(text);
  return text.find(words) != std::string::npos;
}

CollectiveOptions tries(int candidates) {
  CollectiveOptions options;
  options.tune = candidates;
  return options;
}

void check(const Operation& operation) {
  const VerifyReport report = verify(operation);
  INFO(report.text());
  CHECK(report.ok());
  const std::string text = operation.explain();
  CHECK(has(text, "tried for option 'tune'"));
  CHECK(has(text, "<- kept"));
}

}  // namespace

RANK_TEST("collectives that were tuned while they were made leave the user's memory alone, and are right") {
  if (ctx.size() > 4) return;
  const int n = ctx.size();
  for (const std::int64_t count : {1, 37, 9001}) {
    for (const bool shared : {false, true}) {
      const auto block = shared_alloc(ctx, 8 * count);
      std::vector<double> own = numbers(count, 100.0 * ctx.rank());
      double* const in = shared ? reinterpret_cast<double*>(block.get()) : own.data();
      if (shared) std::copy(own.begin(), own.end(), in);
      std::vector<double> out = numbers(count, -5), all = numbers(n * count, -7);
      const std::vector<double> out_before = out, all_before = all;
      Allreduce sum(ctx, in, out.data(), count, DType::f64, ReduceOp::sum, tries(3));
      Allgather gather(ctx, in, all.data(), count, DType::f64, tries(4));
      CHECK(std::equal(own.begin(), own.end(), in));
      CHECK(out == out_before);
      CHECK(all == all_before);
      if (n > 1) check(sum);
      if (n > 1) check(gather);
      for (int turn = 0; turn < 4; ++turn) {
        std::iota(in, in + count, 100.0 * ctx.rank() + turn);
        sum.start();
        gather.start();
        sum.wait();
        gather.wait();
        for (const std::int64_t i : {std::int64_t{0}, count / 2, count - 1}) {
          CHECK(out[static_cast<std::size_t>(i)] ==
                100.0 * n * (n - 1) / 2 + n * static_cast<double>(turn) + n * static_cast<double>(i));
          for (int r = 0; r < n; ++r)
            CHECK(all[static_cast<std::size_t>(r * count + i)] == 100.0 * r + turn + static_cast<double>(i));
        }
        ctx.barrier();
      }
    }
  }
}

RANK_TEST("halos, transfers and collectives in place that were tuned are right") {
  if (ctx.size() > 4) return;
  const int n = ctx.size();
  Grid grid(ctx, {12 * n, 40}, GridOptions{.split = {n, 1}, .periodic = {true, true}});
  for (const bool alternating : {false, true}) {
    FieldOptions two;
    two.copies = alternating ? 2 : 1;
    Field<double> u(grid, two);
    HaloOptions options;
    options.tune = 3;
    options.alternating = alternating;
    for (int copy = 0; copy < u.copies(); ++copy) std::fill_n(u.data(), u.bytes() / 8, 3.5);
    const std::vector<double> before(u.data(), u.data() + u.bytes() / 8);
    const int current = u.current();
    Halo halo({HaloField(u)}, options);
    CHECK(u.current() == current);
    CHECK(std::equal(before.begin(), before.end(), u.data()));
    if (n > 1) check(halo);
    for (int turn = 0; turn < 4; ++turn) {
      u.for_each([&](const Index&, double& cell) { cell = 10.0 * ctx.rank() + turn; });
      halo.start();
      halo.wait();
      CHECK(u.data()[1] == 10.0 * ((ctx.rank() + n - 1) % n) + turn);
      if (alternating) u.swap();
      ctx.barrier();
    }
  }
  std::vector<double> data = numbers(5000, ctx.rank());
  Allreduce in_place_sum(ctx, in_place, data.data(), 5000, DType::f64, ReduceOp::max, tries(2));
  CHECK(data == numbers(5000, ctx.rank()));
  in_place_sum.start();
  in_place_sum.wait();
  CHECK(data == numbers(5000, n - 1));
  // Only two ranks make a transfer.
  std::vector<double> from = numbers(3000, 1), to = numbers(3000, -1);
  const int last = n - 1;
  OperationOptions options;
  options.tune = 3;
  Transfer transfer(ctx, {0, from.data(), Layout::bytes(24000)}, {last, to.data(), Layout::bytes(24000)}, options);
  CHECK(to == numbers(3000, -1));
  transfer.start();
  transfer.wait();
  if (ctx.rank() == last) CHECK(to == numbers(3000, 1));
}

RANK_TEST("option tune keeps to what is forced, and refuses what cannot be on every rank") {
  if (ctx.size() == 1 || ctx.size() > 4 || std::getenv("TASUKI_PATH") != nullptr) return;
  std::vector<double> in(100), out(100);
  const auto made = [&](const CollectiveOptions& options) {
    return Allreduce(ctx, in.data(), out.data(), 100, DType::f64, ReduceOp::sum, options);
  };
  CollectiveOptions options = tries(3);
  options.path = "mpi";
  const Allreduce forced = made(options);
  for (const std::string& path : forced.plan().paths) CHECK((path == "mpi" || path.starts_with("self")));
  options = tries(-1);
  CHECK(has(error_of([&] { made(options); }), "argument 'tune' is -1"));
  options = tries(2 + ctx.rank());
  CHECK(has(error_of([&] { made(options); }), "'tune' differs between ranks"));
  options = tries(1);  // nothing to try
  CHECK(made(options).explain().find("tried for") == std::string::npos);
}
