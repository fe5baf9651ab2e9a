// Collectives on memory that is not contiguous: every kind with random layouts, a distributed transpose as
// MPI_Alltoallw does it, MPI's counts and displacements, neighbours; and what is said about layouts that do not fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "collective_cases.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;
using namespace collective_cases;

RANK_TEST("every collective on layouts that differ from rank to rank, by every engine and path") {
  Random random(71);
  const int n = ctx.size();
  const auto paths = host_paths(ctx);
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter,
        CollectiveKind::allgather, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::alltoall,
        CollectiveKind::scan, CollectiveKind::exscan}) {
    for (int i = 0; i < (n > 6 ? 3 : 8); ++i) {
      Wanted w;
      w.kind = kind;
      w.number = i;
      w.root = static_cast<int>(below(random, n));
      w.count = Counts{1, 7, 101, 2049}[static_cast<std::size_t>(below(random, 4))];
      if (has_blocks(kind) && kind != CollectiveKind::alltoall && i % 2 == 0)
        for (int r = 0; r < n; ++r) w.counts.push_back(below(random, 3) == 0 ? 0 : below(random, 300));
      w.in_place = kind != CollectiveKind::broadcast && below(random, 2) == 0;
      w.shared = below(random, 2) == 0;
      w.layouts = 1 + static_cast<unsigned>(below(random, 100000));
      w.options.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
      if (w.options.path != "auto" && w.options.path != "mpi") w.options.path += ",shared:eager";
      w.options.engine = i % 2 == 0 ? "inline" : "thread";
      INFO(described(w));
      const std::int64_t type = below(random, 4);
      const auto running = make(ctx, w, type);
      check_plan(running->operation());
      const Plan off_line = plan(machine_of(ctx), shape_of(w, type_of(type), n)).plan(ctx.rank());
      CHECK(to_json(off_line) == to_json(running->operation().plan()));
      for (int iteration = 0; iteration < 3; ++iteration) {
        running->fill(iteration);
        running->operation().start();
        running->operation().wait();
        CHECK(running->right(iteration));
      }
    }
  }
}

RANK_TEST("an all-to-all with a layout for each block transposes a matrix whose rows the ranks share out") {
  // Rank r has `rows_of(r)` rows of an n x m matrix, and gets `columns_of(r)` rows of its transpose.
  const int ranks = ctx.size();
  constexpr std::int64_t kRows = 23, kColumns = 17;
  const auto begin = [&](std::int64_t of, int r) { return of * r / ranks; };
  const auto rows = [&](int r) { return begin(kRows, r + 1) - begin(kRows, r); };
  const auto columns = [&](int r) { return begin(kColumns, r + 1) - begin(kColumns, r); };
  const int me = ctx.rank();
  std::vector<double> matrix(static_cast<std::size_t>(rows(me) * kColumns));
  std::vector<double> transpose(static_cast<std::size_t>(columns(me) * kRows));
  const Layout number = Layout::of<double>();
  std::vector<Layout> sent, received;
  for (int r = 0; r < ranks; ++r) {
    // My rows of r's columns, row by row; they become columns of its rows.
    const Layout block = Layout::vector(rows(me), columns(r), kColumns, number);
    sent.push_back(Layout::hindexed(std::vector<std::int64_t>{1}, std::vector{8 * begin(kColumns, r)}, block));
    std::vector<Layout> lines(static_cast<std::size_t>(rows(r)), Layout::vector(columns(me), 1, kRows, number));
    std::vector<std::int64_t> ones(lines.size(), 1), at;
    for (std::int64_t i = 0; i < rows(r); ++i) at.push_back(8 * (begin(kRows, r) + i));
    received.push_back(Layout::structure(ones, at, lines));
  }
  for (const bool shared : {false, true}) {
    const auto bytes = static_cast<std::int64_t>(8 * std::max<std::size_t>(matrix.size(), 1));
    const auto memory = shared ? shared_alloc(ctx, bytes) : std::shared_ptr<std::byte>();
    double* const in = shared ? reinterpret_cast<double*>(memory.get()) : matrix.data();
    Alltoall exchange(ctx, in, sent, transpose.data(), received);
    check_plan(exchange);
    for (int turn = 0; turn < 3; ++turn) {
      const auto value = [&](std::int64_t i, std::int64_t j) { return static_cast<double>(1000 * i + j) + 0.5 * turn; };
      for (std::int64_t i = 0; i < rows(me); ++i)
        for (std::int64_t j = 0; j < kColumns; ++j) in[i * kColumns + j] = value(begin(kRows, me) + i, j);
      std::fill(transpose.begin(), transpose.end(), -1.0);
      exchange.start();
      exchange.wait();
      int wrong = 0;
      for (std::int64_t j = 0; j < columns(me); ++j)
        for (std::int64_t i = 0; i < kRows; ++i)
          wrong += transpose[static_cast<std::size_t>(j * kRows + i)] == value(i, begin(kColumns, me) + j) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

RANK_TEST("blocks as MPI counts them: an extent apart, by counts and displacements, each with a type of its own") {
  const int n = ctx.size();
  const auto r = static_cast<std::size_t>(ctx.rank());
  // Every rank gives two of four columns of 3 numbers; they become neighbouring columns.
  const Layout column = Layout::resized(Layout::vector(3, 1, 4, Layout::of<float>()), 0, 4);
  const Layout wide = Layout::resized(Layout::vector(3, 1, 2 * n, Layout::of<float>()), 0, 4);
  const Layout two = Layout::contiguous(2, wide);
  std::vector<float> in(12), out(static_cast<std::size_t>(6 * n));
  Allgather gather(ctx, in.data() + 1, Layout::contiguous(2, column), out.data(), blocks_of(two, n));
  check_plan(gather);
  // The same by counts and displacements in extents, in the reverse order of ranks.
  std::vector<float> back(out.size());
  Counts counts(static_cast<std::size_t>(n), 2), displacements;
  for (int i = 0; i < n; ++i) displacements.push_back(2 * (n - 1 - i));
  Allgather reversed(ctx, in.data() + 1, Layout::contiguous(2, column), back.data(),
                     blocks_of(wide, counts, displacements));
  check_plan(reversed);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>(100 * r + i + 1000 * static_cast<std::size_t>(turn));
    gather.start();
    reversed.start();
    gather.wait();
    reversed.wait();
    for (int a = 0; a < n; ++a) {
      for (int c = 0; c < 2; ++c) {
        for (int i = 0; i < 3; ++i) {
          const auto expected = static_cast<float>(100 * a + 4 * i + 1 + c + 1000 * turn);
          CHECK(out[static_cast<std::size_t>(i * 2 * n + 2 * a + c)] == expected);
          CHECK(back[static_cast<std::size_t>(i * 2 * n + 2 * (n - 1 - a) + c)] == expected);
        }
      }
    }
  }
  const std::vector<Layout> types{Layout::of<double>(), Layout::of<char>(3)};
  const auto blocks = blocks_of(types, Counts{2, 1}, Counts{40, 8});
  CHECK(blocks[0].true_lower_bound() == 40);
  CHECK(blocks[0].size() == 16);
  CHECK(blocks[1].true_upper_bound() == 11);
  CHECK(says(error_of([&] { blocks_of(types, Counts{2}, Counts{40, 8}); }), "1 counts but 2 displacements"));
  CHECK(says(error_of([&] { blocks_of(types, Counts{2}, Counts{40}); }), "2 elements but 1 counts"));
  CHECK(says(error_of([&] { blocks_of(Layout::bytes(3), -2); }), "count"));
}

RANK_TEST("neighbours exchange blocks with layouts on a grid: the edges of a field in two dimensions") {
  Grid grid(ctx, {64, 64}, GridOptions{.periodic = {true, true}});
  const Neighbours neighbours(grid);
  constexpr std::int64_t kWidth = 9, kHeight = 6;  // with an edge of one cell
  std::vector<std::int32_t> field(kWidth * kHeight), expected;
  const Layout cell = Layout::of<std::int32_t>();
  const auto box = [&](std::vector<std::int64_t> sub, std::vector<std::int64_t> start) {
    return Layout::subarray(std::vector<std::int64_t>{kHeight, kWidth}, sub, start, cell);
  };
  const std::vector<Layout> own{box({1, kWidth - 2}, {1, 1}), box({1, kWidth - 2}, {kHeight - 2, 1}),
                                box({kHeight - 2, 1}, {1, 1}), box({kHeight - 2, 1}, {1, kWidth - 2})};
  const std::vector<Layout> edge{box({1, kWidth - 2}, {0, 1}), box({1, kWidth - 2}, {kHeight - 1, 1}),
                                 box({kHeight - 2, 1}, {1, 0}), box({kHeight - 2, 1}, {1, kWidth - 1})};
  NeighbourAlltoall exchange(ctx, neighbours, field.data(), own, field.data(), edge);
  check_plan(exchange);
  // And every neighbour's upper left corner of 2 x 2, into four blocks.
  std::vector<std::int32_t> corners(16);
  NeighbourAllgather gather(ctx, neighbours, field.data(), box({2, 2}, {1, 1}), corners.data(),
                            blocks_of(Layout::bytes(16), 4));
  check_plan(gather);
  const auto value = [&](int rank, std::int64_t i, std::int64_t j, int turn) {
    return static_cast<std::int32_t>(100000 * turn + 1000 * rank + 10 * i + j);
  };
  for (int turn = 1; turn < 4; ++turn) {
    std::fill(field.begin(), field.end(), -1);
    for (std::int64_t i = 1; i < kHeight - 1; ++i)
      for (std::int64_t j = 1; j < kWidth - 1; ++j)
        field[static_cast<std::size_t>(i * kWidth + j)] = value(ctx.rank(), i, j, turn);
    exchange.start();
    gather.start();
    gather.wait();
    exchange.wait();
    const auto at = [&](std::int64_t i, std::int64_t j) { return field[static_cast<std::size_t>(i * kWidth + j)]; };
    int wrong = 0;
    for (std::int64_t j = 1; j < kWidth - 1; ++j) {
      wrong += at(0, j) == value(neighbours.from[0], kHeight - 2, j, turn) ? 0 : 1;
      wrong += at(kHeight - 1, j) == value(neighbours.from[1], 1, j, turn) ? 0 : 1;
    }
    for (std::int64_t i = 1; i < kHeight - 1; ++i) {
      wrong += at(i, 0) == value(neighbours.from[2], i, kWidth - 2, turn) ? 0 : 1;
      wrong += at(i, kWidth - 1) == value(neighbours.from[3], i, 1, turn) ? 0 : 1;
    }
    wrong += at(0, 0) == -1 && at(kHeight - 1, kWidth - 1) == -1 ? 0 : 1;
    for (std::size_t b = 0; b < 4; ++b)
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 2; ++j)
          wrong += corners[4 * b + static_cast<std::size_t>(2 * i + j)] == value(neighbours.from[b], 1 + i, 1 + j, turn)
                       ? 0
                       : 1;
    CHECK(wrong == 0);
  }
}

RANK_TEST("layouts that do not fit are named on every rank") {
  const int n = ctx.size();
  const int last = n - 1;
  const bool odd = ctx.rank() == last;
  std::vector<double> in(64), out(64);
  const Layout number = Layout::of<double>();
  const Layout four = Layout::vector(4, 1, 2, number);
  const auto blocks = blocks_of(number, n);
  CHECK(says(error_of([&] { Alltoall x(ctx, in.data(), blocks_of(number, n + 1), out.data(), blocks); }),
             "Alltoall: rank 0: argument 'in_layouts' has " + std::to_string(n + 1) + " layouts for " +
                 std::to_string(n) + (n == 1 ? " rank" : " ranks")));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), Layout::bytes(12), out.data(), four, DType::f64); }),
             "argument 'in_layout' (12 B) names 12 bytes, which is no whole number of elements of f64"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), four, in.data() + 2, four, DType::f64); }),
             "arguments 'in' and 'out' overlap in memory"));
  CHECK(error_of([&] { Allreduce x(ctx, in.data(), four, in.data() + 1, four, DType::f64); }) == "no error");
  CHECK(says(
      error_of([&] { Allreduce x(ctx, in.data(), four, out.data(), Layout::hvector(4, 1, 4, number), DType::f64); }),
      "names a byte twice"));
  const double* const missing = odd ? nullptr : in.data();
  CHECK(says(error_of([&] { Allgather x(ctx, missing, number, out.data(), blocks); }),
             "Allgather: rank " + std::to_string(last) + ": argument 'in' is null"));
  if (n == 1) return;
  CHECK(says(error_of([&] { Broadcast x(ctx, 0, in.data(), odd ? number : four); }),
             "Broadcast: argument 'layout' of rank 0 names 32 bytes, but 'layout' of rank " + std::to_string(last) +
                 " names 8; they must be equal"));
  auto other = blocks;
  if (odd) other[0] = four;
  CHECK(says(error_of([&] { Alltoall x(ctx, in.data(), blocks, out.data(), other); }),
             "Alltoall: argument 'in_layouts' for rank " + std::to_string(last) +
                 " of rank 0 names 8 bytes, but 'out_layouts' for rank 0 of rank " + std::to_string(last) +
                 " names 32; they must be equal"));
  CHECK(says(error_of([&] { Gather x(ctx, 0, in.data(), odd ? four : number, out.data(), blocks); }),
             "Gather: argument 'in_layout' of rank " + std::to_string(last) +
                 " names 32 bytes, but 'out_layouts' for rank " + std::to_string(last) + " of rank 0 names 8"));
  CHECK(says(error_of([&] {
               if (odd) {
                 Allreduce x(ctx, in.data(), out.data(), 4, DType::f64);
               } else {
                 Allreduce x(ctx, in.data(), four, out.data(), four, DType::f64);
               }
             }),
             "argument 'layouts' differs between ranks"));
  const int above = (ctx.rank() + 1) % n;
  const int under = (ctx.rank() + n - 1) % n;
  const Neighbours ring({above}, {under});
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, ring, in.data(), {odd ? four : number}, out.data(), std::vector{number});
             }),
             "rank " + std::to_string(last) + " sends 32 bytes to rank 0 (its block 0), which receives 8 from it"));
  CHECK(says(error_of([&] {
               NeighbourAlltoall x(ctx, ring, in.data(), std::vector{number}, out.data(), std::vector<Layout>{});
             }),
             "argument 'out_layouts' has 0 layouts for 1 neighbours"));
}
