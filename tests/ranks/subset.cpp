// Subsets of a context's ranks: what is done with one involves its ranks and nobody else.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

std::vector<int> from_to(int first, int last) {
  std::vector<int> ranks(static_cast<std::size_t>(last - first));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

double cell(std::int64_t i, std::int64_t j, int epoch, int salt) {
  return static_cast<double>(i) * 100 + static_cast<double>(j) + epoch * 0.25 + salt * 1e6;
}

// A periodic halo of width 2 on an odd grid over all ranks of `ctx`, with other data each time.
void check_halo(const Context& ctx, int salt) {
  constexpr std::int64_t kRows = 27;
  constexpr std::int64_t kColumns = 17;
  const Grid grid(ctx, {kRows, kColumns}, {.periodic = {true, true}});
  Field<double> u(grid, {.name = "u", .shadow = 2});
  Halo halo{HaloField(u)};
  const VerifyReport report = verify(halo);
  INFO(report.text());
  CHECK(report.ok());
  const auto wrap = [](std::int64_t i, std::int64_t extent) { return (i + extent) % extent; };
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::fill_n(u.data(), u.bytes() / static_cast<std::int64_t>(sizeof(double)), -1.0);
    u.for_each([&](const Index& at, double& value) { value = cell(at[0], at[1], epoch, salt); });
    halo.start();
    halo.wait();
    const Box owned = grid.owned();
    int wrong = 0;
    for (std::int64_t i = -2; i < owned.hi[0] - owned.lo[0] + 2; ++i) {
      for (std::int64_t j = -2; j < owned.hi[1] - owned.lo[1] + 2; ++j) {
        const double got = u.data()[(i + 2) * u.strides()[0] + j + 2];
        wrong += got == cell(wrap(owned.lo[0] + i, kRows), wrap(owned.lo[1] + j, kColumns), epoch, salt) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

// A column of the first rank's matrix to a list on the last one, in shared and in private memory.
void check_transfer(const Context& ctx, int salt) {
  constexpr std::int64_t kCells = 317;
  const int last = ctx.size() - 1;
  const Layout column = Layout::vector(kCells, 1, 5, Layout::of<double>());
  const auto shared = shared_alloc(ctx, kCells * 6 * static_cast<std::int64_t>(sizeof(double)));
  std::vector<double> own(static_cast<std::size_t>(kCells) * 6);
  for (double* memory : {reinterpret_cast<double*>(shared.get()), own.data()}) {
    double* const list = memory + kCells * 5;
    Transfer transfer(ctx, {0, memory, column}, {last, list, Layout::of<double>(kCells)});
    CHECK(verify(transfer).ok());
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (std::int64_t i = 0; i < kCells && ctx.rank() == 0; ++i) memory[i * 5] = cell(i, 3, epoch, salt);
      if (ctx.rank() == last) std::fill_n(list, kCells, -1.0);
      transfer.start();
      transfer.wait();
      int wrong = 0;
      for (std::int64_t i = 0; i < kCells && ctx.rank() == last; ++i)
        wrong += list[i] == cell(i, 3, epoch, salt) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

void check_broadcast(const Context& ctx, int salt) {
  constexpr std::size_t kNumbers = 1003;
  const int root = ctx.size() - 1;
  std::vector<std::int32_t> data(kNumbers);
  Broadcast broadcast(ctx, root, data.data(), kNumbers * sizeof(std::int32_t));
  CHECK(verify(broadcast).ok());
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int32_t> expected(kNumbers);
    std::iota(expected.begin(), expected.end(), salt * 10000 + epoch);
    std::ranges::fill(data, -1);
    if (ctx.rank() == root) std::ranges::copy(expected, data.begin());
    broadcast.start();
    broadcast.wait();
    CHECK(data == expected);
  }
}

void check_all(const Context& ctx, int salt) {
  check_halo(ctx, salt);
  check_transfer(ctx, salt);
  check_broadcast(ctx, salt);
}

}  // namespace

RANK_TEST("each half of the ranks works by itself, numbered in the order given") {
  const int half = (ctx.size() + 1) / 2;
  const bool low = ctx.rank() < half;
  std::vector<int> ranks = low ? from_to(0, half) : from_to(half, ctx.size());
  std::ranges::reverse(ranks);
  const Context part = ctx.subset(ranks);
  CHECK(part.size() == static_cast<int>(ranks.size()));
  CHECK(ranks[static_cast<std::size_t>(part.rank())] == ctx.rank());
  CHECK(part.id() != ctx.id());
  CHECK(part.allgather(ctx.rank()) == ranks);
  check_all(part, low ? 1 : 2);
  part.barrier();
  check_halo(ctx, 3);  // and all of them together
}

RANK_TEST("subsets overlap, are used in turn, and are let go of in any order") {
  std::vector<Context> pairs;  // this rank with the one below it, then with the one above
  for (int low = 0; low + 1 < ctx.size(); ++low) {
    const std::vector<int> two{low + 1, low};
    if (ctx.rank() == low || ctx.rank() == low + 1) pairs.push_back(ctx.subset(two));
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (const Context& pair : pairs) check_transfer(pair, turn);
  }
  // Neighbours come to the two that they share at different times, and nobody waits.
  if (ctx.rank() % 2 == 1) std::ranges::reverse(pairs);
  while (!pairs.empty()) pairs.pop_back();
  ctx.barrier();
  // The same ranks make the same subset again.
  for (int turn = 0; turn < 3; ++turn) {
    const Context all = ctx.subset(from_to(0, ctx.size()));
    all.barrier();
  }
}

RANK_TEST("operations of a context and of its subsets are waited for in other orders on every rank") {
  Context whole = ctx.subset(from_to(0, ctx.size()));
  Context turned = ctx.subset(from_to(0, ctx.size()));
  constexpr std::int64_t kCount = 1001;
  std::vector<std::int64_t> mine(kCount);
  std::vector<std::int64_t> sums[3];
  CollectiveOptions options;
  options.algorithm = ctx.size() > 1 ? "ring" : "auto";
  std::vector<Allreduce> all;
  int of = 0;
  for (const Context* where : {&ctx, &std::as_const(whole), &std::as_const(turned)}) {
    sums[of].resize(kCount);
    all.emplace_back(*where, mine.data(), sums[of++].data(), kCount, DType::i64, ReduceOp::sum, options);
    CHECK(verify(all.back()).ok());
  }
  for (int epoch = 0; epoch < 6; ++epoch) {
    for (std::int64_t i = 0; i < kCount; ++i) mine[static_cast<std::size_t>(i)] = ctx.rank() * 7 + epoch * 1000 + i;
    for (int k = 0; k < 3; ++k) all[static_cast<std::size_t>((k + ctx.rank()) % 3)].start();
    for (int k = 3; k-- > 0;) all[static_cast<std::size_t>((k + 2 * ctx.rank() + epoch) % 3)].wait();
    const std::int64_t ranks = ctx.size();
    for (const auto& sum : sums)
      for (std::int64_t i = 0; i < kCount; ++i)
        REQUIRE(sum[static_cast<std::size_t>(i)] == ranks * (ranks - 1) / 2 * 7 + ranks * (epoch * 1000 + i));
  }
}

RANK_TEST("a rank that is left out may sleep until the others are done") {
  if (ctx.size() < 2) return;
  const auto pids = ctx.allgather(static_cast<std::int64_t>(getpid()));
  const auto done = std::filesystem::temp_directory_path() / ("tasuki-subset-" + std::to_string(pids[0]));
  if (ctx.rank() == 0) {
    const auto begin = std::chrono::steady_clock::now();
    const auto late = [&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(100); };
    while (!std::filesystem::exists(done) && !late()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(std::filesystem::remove(done));
  } else {
    const Context rest = ctx.subset(from_to(1, ctx.size()));
    check_all(rest, 4);
    rest.barrier();
    if (rest.is_root()) std::ofstream(done).put('.');
  }
  ctx.barrier();
}

RANK_TEST("subsets of subsets, of one rank and of all") {
  const Context self = ctx.subset({ctx.rank()});
  CHECK(self.size() == 1);
  check_all(self, 5);
  std::vector<int> ranks = from_to(0, ctx.size());
  std::ranges::rotate(ranks, ranks.begin() + 1);
  std::optional<Context> all = ctx.subset(ranks);
  CHECK(all->rank() == (ctx.rank() + ctx.size() - 1) % ctx.size());
  check_all(*all, 6);
  if (all->rank() > 0) {
    const Context inner = all->subset(from_to(1, all->size()));
    CHECK(inner.rank() == all->rank() - 1);
    all.reset();  // before what was made from it
    check_all(inner, 7);
  }
}

RANK_TEST("what is wrong with a list of ranks is said on the rank that gives it, and concerns nobody else") {
  const std::string me = "Context::subset: rank " + std::to_string(ctx.rank()) + ": argument 'ranks' is (";
  const int size = ctx.size();
  CHECK(error_of([&] { ctx.subset(std::vector<int>{}); }) ==
        me + "), which is empty; name the ranks of the subset, this one among them");
  const std::string own = std::to_string(ctx.rank());
  CHECK(error_of([&] {
          ctx.subset({ctx.rank(), ctx.rank()});
        }) == me + own + ", " + own + "), which names rank " + own + " twice; name it once");
  for (const int outside : {-1, size}) {
    CHECK(error_of([&] {
            ctx.subset({ctx.rank(), outside});
          }) == me + own + ", " + std::to_string(outside) + "), which names rank " + std::to_string(outside) +
                    ", but the context has ranks 0 to " + std::to_string(size - 1));
  }
  if (size == 1) return;
  const int other = (ctx.rank() + 1) % size;
  CHECK(error_of([&] { ctx.subset({other}); }) ==
        me + std::to_string(other) + "), which does not name this rank; only the ranks of a subset make it");
  ctx.barrier();
}

RANK_TEST("lists in different orders are an error on the ranks named, and the context goes on") {
  if (ctx.size() < 2) return;
  if (ctx.rank() < 2) {
    const std::vector<int> list = ctx.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 0};
    CHECK(error_of([&] { ctx.subset(list); }) ==
          "Context::subset: argument 'ranks' differs between ranks: rank 0 has (0, 1), rank 1 has (1, 0)");
    const Context pair = ctx.subset({1, 0});
    check_transfer(pair, 8);
  }
  ctx.barrier();
}

RANK_TEST("two ranks that make different things are told so, and go on") {
  if (ctx.size() < 2) return;
  double number = 3;
  const auto transfer = [&] {
    Transfer made(ctx, {0, &number, Layout::of<double>()}, {1, &number, Layout::of<double>()});
  };
  const std::vector<int> both{0, 1};
  const auto subset = [&] { ctx.subset(both); };
  const auto agree = [&] { ctx.agree("turning", {}, "", both); };
  const auto different = [](const std::string& text) {
    INFO(text);
    return text.find("the ranks do different things: rank ") == 0;
  };
  if (ctx.rank() == 0) {
    CHECK(different(error_of(subset)));
    CHECK(different(error_of(transfer)));
    CHECK(different(error_of(subset)));
  } else if (ctx.rank() == 1) {
    CHECK(different(error_of(transfer)));
    CHECK(different(error_of(agree)));
    CHECK(different(error_of(agree)));
  }
  if (ctx.rank() < 2) transfer();
  ctx.barrier();
}
