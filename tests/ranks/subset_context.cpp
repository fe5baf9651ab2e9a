// Subsets over MPI: what they have from their context, how long both live, and ranks that do not come.
#include <doctest/doctest.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a subset has its context's settings, deadline, islands and prices") {
  setenv("TASUKI_ISLAND", "2", 1);
  setenv("TASUKI_ENGINE", "thread", 1);
  Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_ISLAND");
  unsetenv("TASUKI_ENGINE");
  ctx.set_deadline(17.5);
  const Machine machine = machine_of(ctx);
  std::vector<int> all;
  for (int rank = ctx.size(); rank-- > 0;) all.push_back(rank);
  const Context part = ctx.subset(all);
  CHECK(part.deadline() == 17.5);
  CHECK(runtime_of(part).settings().engine == "thread");
  const Topology& whole = runtime_of(ctx).topology();
  const Topology& topology = runtime_of(part).topology();
  CHECK(topology.islands == whole.islands);
  for (int a = 0; a < part.size(); ++a)
    for (int b = 0; b < part.size(); ++b)
      CHECK(topology.same_island(a, b) ==
            whole.same_island(all[static_cast<std::size_t>(a)], all[static_cast<std::size_t>(b)]));
  const Machine of_part = machine_of(part);
  for (const auto& [path, cost] : machine.costs) CHECK(of_part.cost(path) == cost);
  int order = MPI_IDENT;
  MPI_Comm_compare(part.comm(), ctx.comm(), &order);
  CHECK(order == (ctx.size() == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
}

TEST_CASE("a context and its subsets are let go of in any order") {
  for (int turn = 0; turn < 4; ++turn) {
    auto ctx = std::make_unique<Context>(MPI_COMM_WORLD);
    std::vector<int> all;
    for (int rank = 0; rank < ctx->size(); ++rank) all.push_back(rank);
    const int me = ctx->rank();
    std::optional<Context> one = ctx->subset(all);
    std::optional<Context> other = one->subset(all);
    std::optional<Field<double>> held(std::in_place, Grid(*other, {33}));
    if ((me + turn) % 2 == 0) {
      one.reset();
      ctx.reset();
      other.reset();
      held.reset();
    } else {
      held.reset();
      other.reset();
      ctx.reset();
      one.reset();
    }
  }
}

TEST_CASE("a subset that passes an exception ends the waits of its other ranks") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 2) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = error_of([&] {
    const Context part = ctx.subset(ctx.rank() < 2 ? std::vector<int>{0, 1} : std::vector<int>{ctx.rank()});
    if (ctx.rank() == 0) throw Error("rank 0 stumbles");
    if (ctx.rank() == 1) part.barrier();
  });
  if (ctx.rank() == 0) CHECK(text == "rank 0 stumbles");
  if (ctx.rank() == 1) CHECK(has(text, "rank 0 left with an exception"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  ctx.barrier();  // the context itself goes on
}

TEST_CASE("a rank that gives a context up gives up the subsets made from it") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 2) return;
  std::vector<int> all;
  for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
  const Context part = ctx.subset(all);
  MPI_Barrier(part.comm());
  if (ctx.is_root()) {
    ctx.give_up("rank 0 has had enough");
  } else {
    CHECK(has(error_of([&] { part.barrier(); }), "rank 0 has had enough"));
  }
}

TEST_CASE("lists that name different ranks are an error on all who are named") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 3) return;
  MPI_Barrier(ctx.comm());
  const auto begin = std::chrono::steady_clock::now();
  if (ctx.rank() < 3) {
    const std::string text = error_of([&] {
      ctx.subset(ctx.rank() == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2});
    });
    CHECK(has(text, "Context::subset: the ranks that take part differ: rank "));
    CHECK(has(text, "names 0, 1, 2"));
    CHECK(has(error_of([&] { ctx.subset({ctx.rank()}); }), "cannot be used again"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank that does not come is named at the deadline") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 2) return;
  MPI_Barrier(ctx.comm());
  if (ctx.rank() == 0) {
    ctx.set_deadline(0.1);
    CHECK(has(error_of([&] {
                ctx.subset({0, 1});
              }),
              "rank 0: Context::subset: comparing arguments with rank 1: the deadline of 0.1 s has passed"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
