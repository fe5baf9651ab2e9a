// The pieces of docs/quickstart.md, docs/planning.md, docs/concepts.md, docs/exchange.md and docs/redistribute.md, line
// for line as tools/doc_blocks.py checks, each run and its result tested. The quickstart's first block is a program of
// its own.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

namespace {

// What the pieces continue: the program before them.
tasuki::Grid quickstart_grid(const tasuki::Context& context) {
  return tasuki::Grid(context, {32, 24}, {.periodic = {true, true}});
}

void check_plan(const tasuki::Operation& operation) {
  const tasuki::VerifyReport report = tasuki::verify(operation);
  INFO(report.text());
  CHECK(report.ok());
}

// A number that tells where a cell is and which epoch it is.
double value(std::int64_t i, std::int64_t j, int epoch) {
  return static_cast<double>(((i + 32) % 32 * 24 + (j + 24) % 24) * 10 + epoch);
}

// Wrong cells in `width` cells around the box, at the sides and, if asked for, at the corners.
template <class T>
int wrong_shadow(const tasuki::Field<T>& u, int width, bool corners, int epoch) {
  const tasuki::Box own = u.owned();
  const tasuki::Box local = u.local_owned();
  int wrong = 0;
  for (std::int64_t i = own.lo[0] - width; i < own.hi[0] + width; ++i) {
    for (std::int64_t j = own.lo[1] - width; j < own.hi[1] + width; ++j) {
      const bool outside_i = i < own.lo[0] || i >= own.hi[0];
      const bool outside_j = j < own.lo[1] || j >= own.hi[1];
      if (outside_i && outside_j && !corners) continue;
      const T cell = u.data()[(i - own.lo[0] + local.lo[0]) * u.strides()[0] + (j - own.lo[1] + local.lo[1])];
      if (cell != static_cast<T>(value(i, j, epoch))) ++wrong;
    }
  }
  return wrong;
}

template <class T>
void fill(tasuki::Field<T>& u, int epoch) {
  u.for_each([&](const tasuki::Index& at, T& cell) { cell = static_cast<T>(value(at[0], at[1], epoch)); });
}

}  // namespace

RANK_TEST("the quickstart: several fields") {
  const tasuki::Grid grid = quickstart_grid(ctx);
  tasuki::Field<double> u(grid, {.name = "u", .shadow = 1});

  tasuki::Field<float> v(grid, {.name = "v", .shadow = 2});
  tasuki::HaloOptions options;  // derives from OperationOptions: set members one by one
  options.corners = false;      // only cells that lie outside in one dimension
  tasuki::Halo both(std::vector<tasuki::HaloField>{u, tasuki::HaloField(v, 1)}, options);

  check_plan(both);
  for (int epoch = 0; epoch < 3; ++epoch) {
    fill(u, epoch);
    fill(v, epoch);
    both.start();
    both.wait();
    CHECK(wrong_shadow(u, 1, false, epoch) == 0);
    CHECK(wrong_shadow(v, 1, false, epoch) == 0);
    ctx.barrier();
  }
}

RANK_TEST("the quickstart: memory of one's own") {
  const tasuki::Grid grid = quickstart_grid(ctx);

  const tasuki::Box own = grid.owned();
  std::vector<double> memory((own.extent(0) + 2) * (own.extent(1) + 2));  // shadow included
  tasuki::Field<double> mine(grid, {memory.data()}, {.name = "mine", .shadow = 1});

  CHECK(mine.bytes() == memory.size() * sizeof(double));
  tasuki::Halo halo(mine);
  check_plan(halo);
  for (int epoch = 0; epoch < 3; ++epoch) {
    fill(mine, epoch);
    halo.start();
    halo.wait();
    CHECK(wrong_shadow(mine, 1, true, epoch) == 0);
    ctx.barrier();
  }
}

RANK_TEST("the quickstart: two copies, and overlap") {
  const tasuki::Grid grid = quickstart_grid(ctx);

  tasuki::Field<double> t(grid, {.name = "t", .shadow = 1, .copies = 2});
  t.for_each([](const tasuki::Index& at, double& cell) { cell = at[0] == 0 ? 1.0 : 0.0; });

  tasuki::HaloOptions options;
  options.corners = false;     // the stencil has none
  options.alternating = true;  // a promise: exactly one swap between two starts
  tasuki::Halo halo(t, options);
  halo.start();
  halo.wait();

  for (int n = 0; n < 100; ++n) {
    t.swap();  // now next() has the old values, and data() will get the new ones
    tasuki::overlap(halo, t, 1, [&](const tasuki::Box& box) {
      const double* old = t.next();
      double* now = t.data();
      const std::int64_t row = t.strides()[0];
      for (std::int64_t i = box.lo[0]; i < box.hi[0]; ++i) {
        for (std::int64_t j = box.lo[1]; j < box.hi[1]; ++j) {
          const std::int64_t at = i * row + j;
          now[at] = 0.25 * ((old[at - row] + old[at + row]) + (old[at - 1] + old[at + 1]));
        }
      }
    });
  }

  check_plan(halo);
  // The same by one rank: all columns are alike, so a column of 32 cells is all there is.
  std::vector<double> old(32);
  old[0] = 1;
  for (int n = 0; n < 100; ++n) {
    std::vector<double> now(32);
    for (int i = 0; i < 32; ++i) now[i] = 0.25 * ((old[(i + 31) % 32] + old[(i + 1) % 32]) + (old[i] + old[i]));
    old = now;
  }
  int wrong = 0;
  t.for_each([&](const tasuki::Index& at, const double& cell) { wrong += cell == old[at[0]] ? 0 : 1; });
  CHECK(wrong == 0);
}

RANK_TEST("the quickstart: a reverse halo") {
  const tasuki::Grid grid = quickstart_grid(ctx);
  tasuki::Field<double> u(grid, {.name = "u", .shadow = 1});

  tasuki::HaloOptions options;
  options.reverse = true;
  tasuki::Halo collect(u, options);
  // ... add contributions to cells of u, shadow included ...
  collect.start();
  collect.wait();  // owned cells now have the sums; the shadows keep their values: clear them before you add again

  check_plan(collect);
  const auto cells = static_cast<std::int64_t>(u.bytes() / sizeof(double));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    std::fill_n(u.data(), cells, epoch);
    collect.start();
    collect.wait();
    double sum = 0;
    u.for_each([&](const tasuki::Index&, const double& cell) { sum += cell; });
    double given = 0;
    double found = 0;
    for (const std::int64_t each : ctx.allgather(cells)) given += static_cast<double>(each) * epoch;
    for (const double each : ctx.allgather(sum)) found += each;
    CHECK(given == found);  // nothing is lost, and nothing counted twice
    ctx.barrier();
  }
}

RANK_TEST("the quickstart: a transfer") {
  if (ctx.size() == 1) return;
  const tasuki::Context& context = ctx;

  const std::int64_t n = 512;
  const auto matrix = tasuki::shared_alloc(context, n * n * sizeof(double));  // local; freed with the pointer
  const auto row = tasuki::shared_alloc(context, n * sizeof(double));
  const auto number = tasuki::Layout::of<double>();
  const auto column = tasuki::Layout::vector(n, 1, n, number);
  tasuki::Transfer transfer(context, {.rank = 0, .base = matrix.get(), .layout = column},
                            {.rank = 1, .base = row.get(), .layout = tasuki::Layout::contiguous(n, number)});
  transfer.start();
  transfer.wait();

  check_plan(transfer);
  auto* from = reinterpret_cast<double*>(matrix.get());
  const auto* to = reinterpret_cast<const double*>(row.get());
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (std::int64_t i = 0; i < n; ++i) from[i * n] = static_cast<double>(i * 10 + epoch);
    context.barrier();
    transfer.start();
    transfer.wait();
    int wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) wrong += to[i] == static_cast<double>(i * 10 + epoch) ? 0 : 1;
    if (context.rank() == 1) CHECK(wrong == 0);
    context.barrier();
  }
}

RANK_TEST("the quickstart: a broadcast") {
  const tasuki::Context& context = ctx;

  const std::int64_t bytes = 1 << 20;
  const auto data = tasuki::shared_alloc(context, bytes);
  tasuki::Broadcast broadcast(context, 0, data.get(), bytes);  // from rank 0 to all
  broadcast.start();
  broadcast.wait();

  check_plan(broadcast);
  auto* numbers = reinterpret_cast<std::int32_t*>(data.get());
  for (std::int32_t epoch = 1; epoch <= 3; ++epoch) {
    if (context.is_root())
      for (std::int32_t i = 0; i < bytes / 4; ++i) numbers[i] = i * 10 + epoch;
    broadcast.start();
    broadcast.wait();
    int wrong = 0;
    for (std::int32_t i = 0; i < bytes / 4; ++i) wrong += numbers[i] == i * 10 + epoch ? 0 : 1;
    CHECK(wrong == 0);
    context.barrier();
  }
}

RANK_TEST("the quickstart and the concepts: errors and the verifier") {
  const tasuki::Context& context = ctx;
  int solved = 0;
  const auto solve = [&](const tasuki::Context& on) {
    tasuki::Field<double> u(quickstart_grid(on), {.name = "u", .shadow = 1});
    tasuki::Halo halo(u);

    const tasuki::VerifyReport report = tasuki::verify(halo);
    if (!report.ok()) std::fprintf(stderr, "%s", report.text().c_str());

    CHECK(report.ok());
    ++solved;
  };

  try {
    solve(context);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", context.rank(), error.what());
    MPI_Abort(context.comm(), 1);
  }

  CHECK(solved == 1);
}

RANK_TEST("an exchange of cells with the ranks before and after") {
  const tasuki::Context& context = ctx;

  std::vector<double> u(6 * 3);
  const int after = (context.rank() + 1) % context.size();
  const int before = (context.rank() + context.size() - 1) % context.size();
  tasuki::Exchange exchange(context, {tasuki::ExchangeField(u.data(), 6, 3)}, {{after, {3, 1}}, {before, {}, {4, 5}}});
  exchange.start();
  exchange.wait();

  check_plan(exchange);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = 100 * context.rank() + static_cast<int>(i) + 1000 * turn;
    exchange.start();
    exchange.wait();
    for (std::size_t level = 0; level < 3; ++level) {
      CHECK(u[4 * 3 + level] == 100 * before + 9 + static_cast<int>(level) + 1000 * turn);
      CHECK(u[5 * 3 + level] == 100 * before + 3 + static_cast<int>(level) + 1000 * turn);
    }
  }
}

TEST_CASE("planning: a broadcast on a torus") {
  using tasuki::CollectiveShape;
  using tasuki::Machine;
  using tasuki::Network;
  using tasuki::Planned;
  const std::ostringstream none;
  std::streambuf* const before = std::cout.rdbuf(none.rdbuf());  // what the piece prints

  Machine machine = Machine::uniform(36, 1, 0);  // 36 hosts of a rank each
  machine.outside = {Network::Kind::torus, {6, 6}, 2, 4e9, 1e-7};
  machine.costs["mpi"].one_way = machine.costs["mpi"].mutual = {2e-6, 4e9, 4e9, 0};

  const Planned planned = plan(machine, CollectiveShape::broadcast(0, 4'000'000));
  std::cout << planned.predict().text();

  std::cout.rdbuf(before);
  CHECK(planned.predict().seconds > 4e6 / (4 * 4e9));  // four links lead to a rank
  CHECK(planned.predict().seconds < 4e6 / 4e9);        // trees that share no link take more than one of them
  CHECK_FALSE(none.str().empty());
  CHECK(verify(planned.plans()).ok());
}

RANK_TEST("an array from slabs to permuted blocks that are dealt out") {
  const tasuki::Context& context = ctx;

  using Dim = tasuki::DimDistribution;
  const int n = context.size();
  const tasuki::ArraySide slabs{{{12, 10}, {Dim::block(n), Dim::whole()}}};
  const tasuki::ArraySide dealt{{{10, 12}, {Dim::cyclic(n, 2), Dim::whole()}}};
  const auto a_shape = slabs.array.local(context.rank());
  const auto b_shape = dealt.array.local(context.rank());
  std::vector<double> a(a_shape[0] * a_shape[1]), b(b_shape[0] * b_shape[1]);
  tasuki::Redistribute transpose(context, slabs, dealt, {{a, b}}, {1, 0});
  transpose.start();
  transpose.wait();

  check_plan(transpose);
  const auto rows = slabs.array.indices(context.rank(), 0);
  const auto columns = dealt.array.indices(context.rank(), 0);
  for (int turn = 1; turn < 4; ++turn) {
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<double>(turn * 1000 + rows[i / 10] * 10 + static_cast<std::int64_t>(i % 10));
    transpose.start();
    transpose.wait();
    for (std::size_t i = 0; i < b.size(); ++i)
      CHECK(b[i] == static_cast<double>(turn * 1000 + static_cast<std::int64_t>(i % 12) * 10 + columns[i / 12]));
  }
}
