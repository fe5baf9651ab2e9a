// Making an operation is made to fail on one rank, at each of its steps in turn. Every rank must throw, and be left as
// it was: what is made next gets its own data, whatever its path.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "layout/sequence.hpp"
#include "rank_test.hpp"
#include "session/runtime.hpp"
#include "support/fail_point.hpp"
#include "tasuki/saved_plan.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Made = std::unique_ptr<Operation>;

struct Case {
  std::string name;
  std::function<Made(const OperationOptions& options)> make;
  std::vector<int> among = {};  // none: all ranks
};

template <class Options>
Options with(const OperationOptions& options) {
  Options more;
  static_cast<OperationOptions&>(more) = options;
  return more;
}

// Two rings of messages, active together, in which each rank gets what the one before it sends.
class Rings {
 public:
  explicit Rings(const Context& ctx) : ctx_(ctx) {
    const int n = ctx.size();
    const Neighbours ring({(ctx.rank() + 1) % n}, {(ctx.rank() + n - 1) % n});
    OperationOptions options;
    options.path = n == 1 || runtime_of(ctx).topology().threads ? "auto" : "mpi";
    for (Memory& one : memory_)
      one.operation =
          std::make_unique<NeighbourAlltoall>(ctx, ring, one.in.data(), one.out.data(), 7, DType::i32, options);
  }

  bool right(int turn) {
    for (std::size_t ring = 0; ring < memory_.size(); ++ring) {
      std::iota(memory_[ring].in.begin(), memory_[ring].in.end(), value(ctx_.rank(), ring, turn));
      memory_[ring].operation->start();
    }
    bool all = true;
    for (std::size_t ring = 0; ring < memory_.size(); ++ring) {
      memory_[ring].operation->wait();
      const int before = (ctx_.rank() + ctx_.size() - 1) % ctx_.size();
      all = all && memory_[ring].out.front() == value(before, ring, turn) &&
            memory_[ring].out.back() == value(before, ring, turn) + 6;
    }
    return all;
  }

 private:
  struct Memory {
    std::vector<std::int32_t> in = std::vector<std::int32_t>(7);
    std::vector<std::int32_t> out = std::vector<std::int32_t>(7);
    Made operation;
  };
  static std::int32_t value(int rank, std::size_t ring, int turn) {
    return 1000 * turn + 100 * rank + 10 * static_cast<std::int32_t>(ring);
  }

  const Context& ctx_;
  std::array<Memory, 2> memory_;
};

// Makes the operation again and again, a step later each time, until nothing fails. Returns the number of steps.
int fail_everywhere(const Context& ctx, const Case& one, const OperationOptions& options, int victim) {
  Runtime& runtime = runtime_of(ctx);
  const int regions = runtime.memory().regions();
  const bool takes_part =
      one.among.empty() || std::find(one.among.begin(), one.among.end(), ctx.rank()) != one.among.end();
  for (int step = 0;; ++step) {
    REQUIRE(step < 1000);
    Made made;
    if (ctx.rank() == victim) FailPoint::arm(step);
    const std::string error = error_of([&] { made = one.make(options); });
    const bool hit = ctx.rank() == victim && FailPoint::disarm();
    bool failed = false;
    for (const std::string& told : ctx.allgather(std::string(hit ? "hit" : ""))) failed = failed || !told.empty();
    CAPTURE(one.name);
    CAPTURE(options.path);
    CAPTURE(options.engine);
    CAPTURE(victim);
    CAPTURE(step);
    CHECK((made == nullptr) == (failed && takes_part));
    if (failed && takes_part) says(error, "was made to fail");
    if (!failed) CHECK(error == "no error");
    made.reset();
    // The first turn shows messages that are taken for others, the next ones counters that are not where they were.
    Rings rings(ctx);
    for (int turn = 0; turn < 2; ++turn) CHECK(rings.right(10 * step + turn));
    if (!failed) return step;
    CHECK(runtime.memory().regions() <= regions + 1);
  }
}

}  // namespace

RANK_TEST("making is made to fail at every step on one rank: all throw, and are as they were") {
  const int n = ctx.size();
  if (n == 1) return;
  const int me = ctx.rank();
  const Grid grid(ctx, {5 * n, 6}, {.split = {n, 1}, .periodic = {true, false}});
  Field<double> u(grid, {.name = "u", .shadow = 1});
  Field<double> pair(grid, {.name = "v", .shadow = 1, .copies = 2});
  constexpr std::int64_t kCount = 33;
  const auto bytes = static_cast<std::int64_t>(sizeof(double)) * kCount * n;
  const auto shared = shared_alloc(ctx, 2 * bytes);
  double* const in = reinterpret_cast<double*>(shared.get());
  double* const out = in + kCount * n;
  std::vector<double> own(static_cast<std::size_t>(kCount * n));
  const Plan plan = Halo(HaloField(u)).plan();
  const int next = (me + 1) % n;
  const int before = (me + n - 1) % n;
  const Operator first(
      "first", [](const void*, void*, std::int64_t) {}, false);
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(n), 5);
  const std::vector<Case> cases{
      {"halo", [&](const auto& options) { return std::make_unique<Halo>(HaloField(u), with<HaloOptions>(options)); }},
      {"halo of a pair",
       [&](const auto& options) {
         return std::make_unique<Halo>(std::vector<HaloField>{u, pair}, with<HaloOptions>(options));
       }},
      {"transfer",
       [&](const auto& options) {
         return std::make_unique<Transfer>(ctx, TransferSide{0, in, Layout::vector(kCount, 1, 2, Layout::bytes(4))},
                                           TransferSide{n - 1, own.data(), Layout::bytes(4 * kCount)}, options);
       },
       {0, n - 1}},
      {"allreduce",
       [&](const auto& options) {
         return std::make_unique<Allreduce>(ctx, in, own.data(), kCount, DType::f64, ReduceOp::sum,
                                            with<CollectiveOptions>(options));
       }},
      {"scan by an operator",
       [&](const auto& options) {
         return std::make_unique<Scan>(ctx, in_place, out, kCount, DType::f64, first, with<CollectiveOptions>(options));
       }},
      {"alltoall of counts",
       [&](const auto& options) {
         return std::make_unique<Alltoall>(ctx, in, out, counts, counts, DType::f64, with<CollectiveOptions>(options));
       }},
      {"allgather of layouts",
       [&](const auto& options) {
         std::vector<Layout> blocks;  // every second element of the memory
         for (int r = 0; r < n; ++r) blocks.push_back(moved(Layout::vector(5, 1, 2, Layout::bytes(8)), 88 * r));
         return std::make_unique<Allgather>(ctx, in, Layout::bytes(40), out, blocks, with<CollectiveOptions>(options));
       }},
      {"neighbour allgather",
       [&](const auto& options) {
         return std::make_unique<NeighbourAllgather>(ctx, Neighbours({next}, {before}), in, own.data(), kCount,
                                                     DType::f64, options);
       }},
      {"loaded plan",
       [&](const auto& options) {
         return std::make_unique<SavedPlan>(ctx, plan, std::vector<PlanMemory>{PlanMemory(u)}, options);
       }},
  };
  std::vector<std::string> paths{"auto", "shared:eager"};
  if (!runtime_of(ctx).topology().threads) paths.emplace_back("mpi");
  if (host_paths(ctx).size() < 4) std::erase(paths, "shared:eager");  // islands
  int turn = 0;
  for (const Case& one : cases) {
    for (const std::string& path : paths) {
      if (one.name == "loaded plan" && path != "auto") continue;
      if (one.name == "alltoall of counts" && path == "shared:eager") continue;  // as the allgather
      OperationOptions options;
      if (one.name != "loaded plan") options.path = path;
      options.engine = turn % 3 == 2 && path != "mpi" ? "thread" : "inline";
      const int victim = one.among.empty() ? turn % n : one.among[static_cast<std::size_t>(turn % 2)];
      const int steps = fail_everywhere(ctx, one, options, victim);
      CHECK(steps > 10);
      ++turn;
    }
  }
  u.free();  // no halo that failed uses it
  pair.free();
}

RANK_TEST("a fallback after a path that not all ranks can take gets its own data") {
  const int n = ctx.size();
  if (n < 3 || host_paths(ctx).size() < 4) return;
  const int me = ctx.rank();
  constexpr std::int64_t kCount = 100;
  constexpr std::int64_t kBytes = kCount * static_cast<std::int64_t>(sizeof(double));
  // The memory of rank 0 cannot be pulled from, that of the others can. Only rank 0 and its neighbour know.
  std::vector<double> own(kCount), got(kCount);
  const auto shared = shared_alloc(ctx, kBytes);
  const void* const source = me == 0 ? static_cast<void*>(own.data()) : shared.get();
  std::vector<int> to, from;
  if (me + 1 < n) to = {me + 1};
  if (me > 0) from = {me - 1};
  for (int round = 0; round < 3; ++round) {
    OperationOptions pull;
    pull.path = "shared:pull";
    const std::string error = error_of(
        [&] { NeighbourAllgather refused(ctx, Neighbours(to, from), source, got.data(), kCount, DType::f64, pull); });
    says(error, "rank 0: ");
    Rings rings(ctx);
    for (int turn = 0; turn < 3; ++turn) CHECK(rings.right(10 * round + turn));
  }
}
