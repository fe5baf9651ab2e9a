// Grids over ranks: owners, placement on islands, and errors on every rank.
#include "tasuki/grid.hpp"

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstdlib>
#include <string>

#include "error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

/// Whether the owned boxes are what coords and cuts say, and cover every cell once.
void check_cover(const Grid& grid) {
  std::int64_t cells = 0;
  std::int64_t all = 1;
  for (int d = 0; d < grid.ndims(); ++d) all *= grid.extent(d);
  for (int rank = 0; rank < grid.context().size(); ++rank) {
    const auto at = grid.coords(rank);
    CHECK(grid.rank_at(at) == rank);
    const Box box = grid.owned(rank);
    CHECK(box.ndims == grid.ndims());
    cells += box.cells();
    for (int d = 0; d < grid.ndims(); ++d) {
      CHECK(box.lo[d] == grid.cut(d, at[d]));
      CHECK(box.hi[d] == grid.cut(d, at[d] + 1));
    }
    for (int other = 0; other < rank; ++other) CHECK(intersect(box, grid.owned(other)).empty());
  }
  CHECK(cells == all);
  CHECK(grid.owned() == grid.owned(grid.context().rank()));
}

}  // namespace

TEST_CASE("every cell has one owner, in one to seven dimensions, also with more ranks than cells") {
  Context ctx(MPI_COMM_WORLD);
  for (const std::vector<std::int64_t>& extents :
       {std::vector<std::int64_t>{10}, {3}, {9, 10, 11}, {1, 1, 1}, {5, 1, 7, 2}, {2, 3, 2, 3, 2, 3, 2}})
    for (const bool reorder : {false, true}) {
      std::vector<bool> periodic(extents.size());
      periodic[0] = true;
      const Grid grid(ctx, extents, {.periodic = periodic, .reorder = reorder});
      check_cover(grid);
      CHECK(grid.periodic(0));
      if (grid.ndims() > 1) CHECK_FALSE(grid.periodic(1));
    }
}

TEST_CASE("without reorder, rank order is row-major") {
  Context ctx(MPI_COMM_WORLD);
  const int rows = ctx.size() % 2 == 0 ? 2 : 1;
  const Grid grid(ctx, {20, 30}, {.split = {rows, 0}});
  CHECK(grid.split(0) == rows);
  CHECK(grid.split(1) == ctx.size() / rows);
  CHECK(grid.coords(ctx.rank())[0] == ctx.rank() / grid.split(1));
  CHECK(grid.coords(ctx.rank())[1] == ctx.rank() % grid.split(1));
}

TEST_CASE("explicit cuts are taken") {
  Context ctx(MPI_COMM_WORLD);
  std::vector<std::int64_t> cuts(static_cast<std::size_t>(ctx.size()) + 1, 5);  // all but the first two empty
  cuts.front() = 0;
  cuts.back() = 12;
  const Grid grid(ctx, {12}, {.cuts = {cuts}});
  check_cover(grid);
  CHECK(grid.owned(ctx.size() - 1).hi[0] == 12);
}

TEST_CASE("with reorder, the heaviest faces stay inside islands, and all ranks agree about it") {
  setenv("TASUKI_ISLAND", "2", 1);
  Context ctx(MPI_COMM_WORLD);
  unsetenv("TASUKI_ISLAND");
  if (ctx.size() % 4 != 0) return;
  const Topology& topology = runtime_of(ctx).topology();
  const Grid grid(ctx, {2 * ctx.size(), 100000}, {.split = {ctx.size() / 2, 2}, .reorder = true});
  check_cover(grid);
  for (int rank = 0; rank < ctx.size(); ++rank) {
    auto at = grid.coords(rank);
    at[0] ^= 1;  // pairs of rows
    CHECK(topology.same_island(rank, grid.rank_at(at)));
  }
  const Grid plain(ctx, {2 * ctx.size(), 100000}, {.split = {ctx.size() / 2, 2}});
  auto at = plain.coords(0);
  at[0] ^= 1;
  CHECK_FALSE(topology.same_island(0, plain.rank_at(at)));
  std::vector<int> mine(ctx.size());
  for (int rank = 0; rank < ctx.size(); ++rank) mine[rank] = grid.coords(rank)[0] * 2 + grid.coords(rank)[1];
  std::vector<int> root = mine;
  MPI_Bcast(root.data(), ctx.size(), MPI_INT, 0, ctx.comm());
  CHECK(mine == root);
}

TEST_CASE("a bad argument on one rank is an error on all") {
  Context ctx(MPI_COMM_WORLD);
  const int last = ctx.size() - 1;
  const bool odd = ctx.rank() == last;
  const std::string who = "Grid: rank " + std::to_string(last) + ": ";
  CHECK(error_of([&] { Grid(ctx, {8, odd ? 0 : 8}); }) == who + "extents[1] is 0; it must be at least 1");
  CHECK(error_of([&] { Grid(ctx, {8}, {.split = {odd ? ctx.size() + 1 : ctx.size()}}); }) ==
        who + "split " + std::to_string(ctx.size() + 1) + " makes " + std::to_string(ctx.size() + 1) +
            " boxes, but the context has " + std::to_string(ctx.size()) + (ctx.size() == 1 ? " rank" : " ranks") +
            "; the product must be equal, or a 0 leaves a dimension to Tasuki");
  CHECK(error_of([&] { Grid(ctx, std::vector<std::int64_t>(8, 1)); }) ==
        "Grid: rank 0: argument 'extents' has 8 dimensions; 1 to 7 are possible");
  std::vector<int> given;
  for (int rank = ctx.size(); rank-- > 0;) given.push_back(rank);
  const Grid backwards(ctx, {8, 8}, {.mapping = "given", .given = given});
  check_cover(backwards);
  CHECK(backwards.coords(last) == Grid(ctx, {8, 8}).coords(0));
  if (ctx.size() > 1) {
    if (odd) given[1] = given[0];
    CHECK(error_of([&] {
            Grid(ctx, {8, 8}, {.mapping = "given", .given = given});
          }) == who + "option 'given' names rank " + std::to_string(last) +
                    " for box 0 and for box 1; every rank has " + "one box");
  }
  CHECK(error_of([&] {
          Grid(ctx, {8, 8}, {.mapping = odd ? "spiral" : "row"});
        }) == who + "option 'mapping' is 'spiral'; it is row, column, blocks, hops or given");
  check_cover(Grid(ctx, {8, 8}));
}

TEST_CASE("arguments that differ between ranks are named") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() == 1) return;
  const bool odd = ctx.rank() == 1;
  const std::string begin = "Grid: argument ";
  CHECK(error_of([&] {
          Grid(ctx, {8, odd ? 9 : 8});
        }) == begin + "'extents' differs between ranks: rank 0 has 8 x 8, rank 1 has 8 x 9");
  CHECK(error_of([&] { Grid(ctx, {8}, {.periodic = {odd}}); }) ==
        begin + "'periodic' differs between ranks: rank 0 has [false], rank 1 has [true]");
  CHECK(error_of([&] { Grid(ctx, {8}, {.reorder = odd}); }) ==
        begin + "'reorder' differs between ranks: rank 0 has false, rank 1 has true");
}

TEST_CASE("asking for ranks, dimensions and coordinates that are not there throws") {
  Context ctx(MPI_COMM_WORLD);
  const Grid grid(ctx, {8, 8});
  CHECK_THROWS_AS((void)grid.extent(2), Error);
  CHECK_THROWS_AS((void)grid.split(-1), Error);
  CHECK_THROWS_AS((void)grid.periodic(7), Error);
  CHECK_THROWS_AS((void)grid.owned(ctx.size()), Error);
  CHECK_THROWS_AS((void)grid.coords(-1), Error);
  CHECK_THROWS_AS((void)grid.rank_at({ctx.size(), 0}), Error);
  CHECK_THROWS_AS((void)grid.cut(0, grid.split(0) + 1), Error);
  CHECK(grid.cut(0, grid.split(0)) == 8);
}
