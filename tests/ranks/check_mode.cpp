// TASUKI_CHECK=1: mistakes that nobody would notice become errors that name ranks and operation.
#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "printed.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// A context that checks.
class Checked {
 public:
  Checked() : ctx_(make()) {}
  Context& operator*() { return ctx_; }
  Context* operator->() { return &ctx_; }

 private:
  static Context make() {
    setenv("TASUKI_CHECK", "1", 1);
    Context ctx(MPI_COMM_WORLD);
    unsetenv("TASUKI_CHECK");
    return ctx;
  }
  Context ctx_;
};

Field<double> pair_of(const Context& ctx, const char* name, int copies = 2) {
  const Grid grid(ctx, {6 * ctx.size(), 5}, {.split = {ctx.size(), 1}, .periodic = {true, false}});
  return Field<double>(grid, {.name = name, .shadow = 2, .copies = copies});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("with TASUKI_CHECK a rank that swaps differently is found by its neighbours, on every path and engine") {
  std::vector<std::string> paths;
  {
    Context ctx(MPI_COMM_WORLD);
    if (ctx.size() == 1) return;
    paths = host_paths(ctx);
  }
  for (const std::string& path : paths) {
    for (const char* engine : {"inline", "thread"}) {
      Checked ctx;
      CAPTURE(path);
      CAPTURE(engine);
      Field<double> u = pair_of(*ctx, "u");
      Field<double> v = pair_of(*ctx, "v", 1);
      HaloOptions options;
      options.path = path;
      options.engine = engine;
      Halo halo({HaloField(v), HaloField(u)}, options);
      CHECK(verify(halo).ok());
      for (int iteration = 0; iteration < 3; ++iteration) {
        u.for_each([&](const Index& at, double& cell) { cell = static_cast<double>(at[0] * 10 + iteration); });
        halo.start();
        halo.wait();
        u.swap();
      }
      MPI_Barrier(MPI_COMM_WORLD);
      const int odd = ctx->size() - 1;
      if (ctx->rank() == odd) u.swap();  // once too often
      const std::string text = error_of([&] {
        halo.start();
        if (ctx->rank() % 2 == 0) {
          halo.wait();
        } else {
          while (!halo.test()) {
          }
        }
      });
      // A rank that is no neighbour may end in peace; who is hears of it, or finds it.
      const bool neighbour = ctx->rank() == 0 || ctx->rank() >= odd - 1;
      const bool found = has(text, "halo v,u: at start 4 rank " + std::to_string(ctx->rank()) + " showed copy ") &&
                         has(text, "of field u, but rank ") && has(text, "call swap alike");
      const bool heard = has(text, "gave up because of a mistake that TASUKI_CHECK found: halo v,u");
      CHECK_MESSAGE((found || heard || !neighbour), text);
      const int mine = found ? 1 : 0;
      int all = 0;
      MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      CHECK(all > 0);
    }
  }
}

TEST_CASE("with TASUKI_CHECK halos that swap alike run as without, alternating or not") {
  for (const bool alternating : {false, true}) {
    Checked ctx;
    Field<double> u = pair_of(*ctx, "u");
    HaloOptions options;
    options.alternating = alternating;
    Halo halo(HaloField(u), options);
    CHECK(verify(halo).ok());
    int wrong = 0;
    for (int iteration = 0; iteration < 7; ++iteration) {
      u.for_each([&](const Index& at, double& cell) { cell = static_cast<double>(at[0] * 10 + iteration); });
      halo.start();
      if (iteration % 2 == 0) {
        while (!halo.test()) {
        }
      }
      halo.wait();
      const std::int64_t extent = u.grid().extent(0);
      const std::int64_t below = (u.owned().lo[0] - 1 + extent) % extent;
      wrong += u.data()[u.strides()[0] + 2] == static_cast<double>(below * 10 + iteration) ? 0 : 1;
      u.swap();
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("with TASUKI_CHECK a wait without a start is an error, and one after a test that found the end is not") {
  Checked ctx;
  Field<double> u = pair_of(*ctx, "u");
  Halo halo{HaloField(u)};
  const std::string expected = "rank " + std::to_string(ctx->rank()) + ": halo u: wait without a start before it";
  CHECK(error_of([&] { halo.wait(); }) == expected);
  halo.start();
  while (!halo.test()) {
  }
  CHECK(error_of([&] { halo.wait(); }) == "no error");
  CHECK(error_of([&] { halo.wait(); }) == expected);
  halo.start();
  halo.wait();
  CHECK(error_of([&] { halo.wait(); }) == expected);
  Context plain(MPI_COMM_WORLD);
  Field<double> w = pair_of(plain, "w");
  Halo other{HaloField(w)};
  CHECK(error_of([&] { other.wait(); }) == "no error");
  CHECK(other.plan().buffers.size() <= halo.plan().buffers.size());
}

TEST_CASE("with TASUKI_CHECK an epoch that is never waited for is told at its operation's end") {
  Checked ctx;
  Field<double> u = pair_of(*ctx, "u");
  const std::string text = printed([&] {
    Halo halo{HaloField(u)};
    halo.start();
    const Halo last = std::move(halo);
  });
  CHECK(text == "tasuki: rank " + std::to_string(ctx->rank()) + ": halo u: epoch 1 was started and never waited for\n");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("TASUKI_CHECK is 0 or 1, the same on all ranks") {
  setenv("TASUKI_CHECK", "yes", 1);
  CHECK(has(error_of([] { Context ctx(MPI_COMM_WORLD); }), "TASUKI_CHECK is 'yes'; it must be 0 or 1"));
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  setenv("TASUKI_CHECK", rank == 0 ? "1" : "0", 1);
  const std::string text = error_of([] { Context ctx(MPI_COMM_WORLD); });
  unsetenv("TASUKI_CHECK");
  CHECK_MESSAGE((size == 1 || has(text, "argument 'TASUKI_CHECK' differs between ranks")), text);
}
