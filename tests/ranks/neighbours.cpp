// Neighbour collectives: on grids and on random graphs against plain loops, with new data at every start, all plans
// verified; and what is said about graphs that do not fit.
#include "tasuki/neighbours.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Counts = std::vector<std::int64_t>;
using Random = std::mt19937;

int below(Random& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// How often each rank sends to each, the same on all ranks: some several times, some to themselves.
std::vector<std::vector<int>> random_graph(int ranks, Random& random) {
  std::vector<std::vector<int>> times(static_cast<std::size_t>(ranks));
  for (auto& row : times)
    for (int b = 0; b < ranks; ++b) row.push_back(below(random, 4) == 0 ? 2 : below(random, 2));
  return times;
}

}  // namespace

RANK_TEST("an all-to-all and an allgather on a random graph, blocks of different lengths, started in any order") {
  Random random(31);
  Random order(32 + static_cast<unsigned>(ctx.rank()));
  const auto n = static_cast<std::size_t>(ctx.size());
  const auto me = static_cast<std::size_t>(ctx.rank());
  for (int graph = 0; graph < (ctx.size() > 8 ? 4 : 12); ++graph) {  // verifying takes long
    const auto times = random_graph(ctx.size(), random);
    const auto length = [&](std::size_t a, std::size_t b, int k) {
      return static_cast<std::int64_t>((a * 5 + b * 3 + static_cast<std::size_t>(k) + static_cast<std::size_t>(graph)) %
                                       7);
    };
    std::vector<int> to, from;
    Counts sent, received;
    for (std::size_t r = 0; r < n; ++r) {
      for (int k = 0; k < times[me][r]; ++k) {
        to.push_back(static_cast<int>(r));
        sent.push_back(length(me, r, k));
      }
    }
    // Whom a rank hears from it may name in another order than the others.
    for (std::size_t r = n; r-- > 0;) {
      for (int k = 0; k < times[r][me]; ++k) {
        from.push_back(static_cast<int>(r));
        received.push_back(length(r, me, k));
      }
    }
    OperationOptions options;
    const auto paths = host_paths(ctx);
    options.path = paths[static_cast<std::size_t>(below(random, static_cast<int>(paths.size())))];
    if (options.path != "auto" && options.path != "mpi") options.path += ",shared:eager";
    std::vector<std::int32_t> in(200), out(200);
    NeighbourAlltoall exchange(ctx, Neighbours(to, from), in.data(), out.data(), sent, received, DType::i32, options);
    check_plan(exchange);
    // What a rank gives to all who name it, beside it.
    const auto given = [&](std::size_t rank) {
      return static_cast<std::int64_t>((rank + static_cast<std::size_t>(graph)) % 4);
    };
    Counts of_each;
    for (const int rank : from) of_each.push_back(given(static_cast<std::size_t>(rank)));
    options.engine = graph % 3 == 1 ? "thread" : "inline";
    std::vector<double> one(4), all(200);
    NeighbourAllgather gather(ctx, Neighbours(to, from), one.data(), all.data(), given(me), of_each, DType::f64,
                              options);
    check_plan(gather);
    const auto value = [&](std::size_t a, std::size_t b, int k, std::int64_t i, int turn) {
      return static_cast<std::int32_t>(1000 * a + 100 * b + 10 * static_cast<std::size_t>(k) +
                                       static_cast<std::size_t>(i) + 100000 * static_cast<std::size_t>(turn));
    };
    for (int turn = 1; turn < 4; ++turn) {
      std::size_t at = 0;
      for (std::size_t r = 0; r < n; ++r)
        for (int k = 0; k < times[me][r]; ++k)
          for (std::int64_t i = 0; i < length(me, r, k); ++i) in[at++] = value(me, r, k, i, turn);
      std::fill(out.begin(), out.end(), -1);
      std::fill(all.begin(), all.end(), -1);
      for (std::size_t i = 0; i < one.size(); ++i) one[i] = value(me, 0, 0, static_cast<std::int64_t>(i), turn);
      std::vector<Operation*> both{&exchange, &gather};
      std::shuffle(both.begin(), both.end(), order);
      for (Operation* operation : both) operation->start();
      std::shuffle(both.begin(), both.end(), order);
      for (Operation* operation : both) operation->wait();
      at = 0;
      for (const int rank : from)
        for (std::int64_t i = 0; i < given(static_cast<std::size_t>(rank)); ++i)
          CHECK(all[at++] == value(static_cast<std::size_t>(rank), 0, 0, i, turn));
      CHECK(all[at] == -1);
      at = 0;
      for (std::size_t r = n; r-- > 0;)
        for (int k = 0; k < times[r][me]; ++k)
          for (std::int64_t i = 0; i < length(r, me, k); ++i) CHECK(out[at++] == value(r, me, k, i, turn));
      CHECK(out[at] == -1);
    }
  }
}

RANK_TEST("an allgather on a ring, one way, with counts of its own") {
  const int n = ctx.size();
  const auto of = [](int rank) { return static_cast<std::int64_t>(rank % 3); };
  const int above = (ctx.rank() + 1) % n;
  const int under = (ctx.rank() + n - 1) % n;
  std::vector<double> in(2), out(3, -1);
  NeighbourAllgather gather(ctx, Neighbours({above}, {under}), in.data(), out.data(), of(ctx.rank()), {of(under)},
                            DType::f64);
  check_plan(gather);
  for (int turn = 0; turn < 3; ++turn) {
    in = {ctx.rank() + 0.5 * turn, 7.0 * turn};
    gather.start();
    gather.wait();
    if (of(under) > 0) CHECK(out[0] == under + 0.5 * turn);
    if (of(under) > 1) CHECK(out[1] == 7.0 * turn);
    CHECK(out[2] == -1);
  }
}

RANK_TEST("on a grid everybody hears from both sides of every dimension, and edges are left alone") {
  for (const bool periodic : {true, false}) {
    const Grid grid(ctx, {64, 64}, {.periodic = {periodic, !periodic}});
    const Neighbours neighbours(grid);
    CHECK(neighbours.to.size() == 4);
    std::vector<std::int64_t> in(12), out(12), one(3), all(12);
    NeighbourAlltoall exchange(ctx, neighbours, in.data(), out.data(), 3, DType::i64);
    NeighbourAllgather gather(ctx, neighbours, one.data(), all.data(), 3, DType::i64);
    check_plan(exchange);
    check_plan(gather);
    const auto value = [](int rank, std::size_t side, std::size_t i, int turn) {
      return static_cast<std::int64_t>(1000 * rank + 10 * static_cast<int>(side) + static_cast<int>(i) + 100000 * turn);
    };
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t i = 0; i < 12; ++i) {
        in[i] = value(ctx.rank(), i / 3, i % 3, turn);
        out[i] = all[i] = -1;
        one[i % 3] = value(ctx.rank(), 0, i % 3, turn);
      }
      exchange.start();
      gather.start();
      gather.wait();
      exchange.wait();
      for (std::size_t side = 0; side < 4; ++side) {
        for (std::size_t i = 0; i < 3; ++i) {
          const int other = neighbours.from[side];
          // What its neighbour below sent upwards comes from below.
          CHECK(out[3 * side + i] == (other < 0 ? -1 : value(other, side ^ 1U, i, turn)));
          CHECK(all[3 * side + i] == (other < 0 ? -1 : value(other, 0, i, turn)));
        }
      }
    }
  }
}

RANK_TEST("graphs that do not fit are refused on every rank") {
  const int n = ctx.size();
  std::vector<double> in(8), out(8);
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, Neighbours({n}, {}), in.data(), out.data(), 1, DType::f64); }),
             "argument 'to' names rank " + std::to_string(n) + " (entry 0)"));
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, Neighbours({}, {-1}), in.data(), out.data(), 1, DType::f64); }),
             "argument 'from' names rank -1 (entry 0)"));
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, Neighbours({0}, {0}), in.data(), out.data(), {1, 2}, {1}, DType::f64);
             }),
             "argument 'send_counts' has 2 entries for 1 neighbours"));
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, Neighbours({ctx.rank()}, {ctx.rank()}), in.data(), in.data(), 1, DType::f64);
             }),
             "overlap"));
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, Neighbours({ctx.rank()}, {ctx.rank()}), nullptr, in.data(), 1, DType::f64);
             }),
             "argument 'in' is null"));
  const Neighbours own({ctx.rank()}, {ctx.rank()});
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, own, in_place, out.data(), 1, DType::f64); }),
             "argument 'in' is in_place, which neighbour collectives do not know"));
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, own, in.data(), in_place, 1, DType::f64); }),
             "argument 'out' is in_place"));
  // What is wrong on one rank is said on all.
  const bool odd = ctx.rank() == n - 1;
  const std::string of_last = "rank " + std::to_string(n - 1) + ": ";
  const auto alltoall = [&](const Neighbours& graph, std::int64_t count, DType type) {
    return error_of([&] { NeighbourAlltoall x(ctx, graph, in.data(), out.data(), count, type); });
  };
  CHECK(says(alltoall(odd ? Neighbours({0, n + 7}, {}) : own, 1, DType::f64),
             of_last + "argument 'to' names rank " + std::to_string(n + 7) + " (entry 1)"));
  CHECK(says(alltoall(own, odd ? -5 : 1, DType::f64), of_last + "argument 'count' is -5"));
  CHECK(says(alltoall(own, odd ? std::int64_t{1} << 60 : 1, DType::f64), "more than can be moved"));
  CHECK(says(alltoall(own, 1, odd ? DType::none : DType::f64), of_last + "argument 'type' is none"));
  CHECK(
      says(alltoall(own, 1, odd ? static_cast<DType>(77) : DType::f64), of_last + "argument 'type': DType: 77 is no "));
  if (n == 1) return;
  // Everybody sends to rank 0, who does not know it.
  const Neighbours star({0}, {});
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, star, in.data(), out.data(), 1, DType::f64); }),
             "rank 0 names rank 0 in 'to' 1 times, but rank 0 names rank 0 in 'from' 0 times"));
  const bool last = ctx.rank() == n - 1;
  const Neighbours pair(last ? std::vector<int>{0} : std::vector<int>{},
                        ctx.is_root() ? std::vector<int>{n - 1, n - 1} : std::vector<int>{});
  CHECK(says(error_of([&] { NeighbourAllgather x(ctx, pair, in.data(), out.data(), 1, DType::f64); }),
             "rank " + std::to_string(n - 1) + " names rank 0 in 'to' 1 times, but rank 0 names rank " +
                 std::to_string(n - 1) + " in 'from' 2 times"));
  const Neighbours ring({(ctx.rank() + 1) % n}, {(ctx.rank() + n - 1) % n});
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, ring, in.data(), out.data(), Counts{last ? 2 : 1}, Counts{1}, DType::f64);
             }),
             "rank " + std::to_string(n - 1) + " sends 16 bytes to rank 0 (its block 0), which receives 8 from it"));
  CHECK(
      says(error_of([&] { NeighbourAlltoall x(ctx, ring, in.data(), out.data(), 1, last ? DType::f32 : DType::f64); }),
           "argument 'type' differs between ranks"));
}
