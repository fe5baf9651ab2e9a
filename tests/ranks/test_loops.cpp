// Loops of `test`: they drive all active operations, and end as waits do.
#include <doctest/doctest.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

Field<double> ring_field(const Context& ctx, const char* name) {
  const Grid grid(ctx, {7 * ctx.size()}, {.periodic = {true}});
  return Field<double>(grid, {.name = name, .shadow = 2});
}

void fill(Field<double>& field, int iteration) {
  field.for_each([&](const Index& at, double& cell) { cell = static_cast<double>(at[0] * 100 + iteration); });
}

bool filled(const Field<double>& field, int iteration) {
  const Grid& grid = field.grid();
  const Box own = field.owned();
  const std::int64_t extent = grid.extent(0);
  for (std::int64_t local = 0; local < field.extents()[0]; ++local) {
    const std::int64_t at = (own.lo[0] + local - 2 + extent) % extent;
    if (field.data()[local] != static_cast<double>(at * 100 + iteration)) return false;
  }
  return true;
}

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("halos that ranks test one after the other, in different orders, all end, thread too") {
  Context ctx(MPI_COMM_WORLD);
  ctx.set_deadline(20);
  for (const std::string& path : host_paths(ctx)) {
    for (const char* engine : {"inline", "thread"}) {
      CAPTURE(path);
      CAPTURE(engine);
      Field<double> a = ring_field(ctx, "a");
      Field<double> b = ring_field(ctx, "b");
      HaloOptions options;
      options.path = path;
      options.engine = engine;
      Halo first{HaloField(a), options};
      Halo second{HaloField(b), options};
      CHECK(verify(first).ok());
      std::mt19937 random(static_cast<unsigned>(ctx.rank()));
      int wrong = 0;
      for (int iteration = 0; iteration < (ctx.size() > 6 ? 8 : 30); ++iteration) {
        fill(a, iteration);
        fill(b, iteration + 50);
        Halo* order[2] = {&first, &second};
        if ((ctx.rank() + iteration) % 2 == 1) std::swap(order[0], order[1]);
        for (Halo* halo : order) {
          halo->start();
          if (random() % 4 == 0) usleep(static_cast<useconds_t>(random() % 300));
        }
        if (random() % 2 == 0) std::swap(order[0], order[1]);
        for (Halo* halo : order)
          while (!halo->test()) {
          }
        wrong += filled(a, iteration) && filled(b, iteration + 50) ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a loop of tests fails at the deadline and names the rank that did not come, thread too") {
  for (const char* engine : {"inline", "thread"}) {
    Context ctx(MPI_COMM_WORLD);
    if (ctx.size() == 1) return;
    CAPTURE(engine);
    const int last = ctx.size() - 1;
    Field<double> u = ring_field(ctx, "u");
    HaloOptions options;
    options.engine = engine;
    Halo halo{HaloField(u), options};
    ctx.barrier();
    ctx.set_deadline(0.4);
    if (ctx.rank() == 0) {
      std::string text;
      const double took = seconds_of([&] {
        halo.start();
        text = error_of([&] {
          while (!halo.test()) {
          }
        });
      });
      const bool named = text.find("rank 0: halo u: epoch 1 did not end") != std::string::npos &&
                         (ctx.size() > 2 || text.find("with rank " + std::to_string(last)) != std::string::npos);
      CHECK_MESSAGE(named, text);
      CHECK(text.find("the deadline of 0.4 s has passed") != std::string::npos);
      CHECK(took < 10);
      CHECK_FALSE(halo.active());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (ctx.rank() == last) {
      // It hears of it in its own loop, at once.
      ctx.set_deadline(30);
      std::string text;
      const double took = seconds_of([&] {
        text = error_of([&] {
          halo.start();
          while (!halo.test()) {
          }
        });
      });
      const bool all_there = text == "no error";  // what it needs had been sent before
      CHECK_MESSAGE((all_there || text.find("rank 0 gave up because") != std::string::npos), text);
      CHECK(took < 10);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("time that a rank spends between two tests is no failure") {
  Context ctx(MPI_COMM_WORLD);
  Field<double> u = ring_field(ctx, "u");
  Halo halo{HaloField(u)};
  ctx.set_deadline(0.6);
  fill(u, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  if (ctx.rank() == 0) {
    halo.start();
    (void)halo.test();
    usleep(900 * 1000);
    CHECK(error_of([&] { (void)halo.test(); }) == "no error");
    CHECK(error_of([&] { (void)halo.test(); }) == "no error");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ctx.set_deadline(20);
  if (ctx.rank() != 0) halo.start();
  while (!halo.test()) {
  }
  CHECK(filled(u, 3));
}
