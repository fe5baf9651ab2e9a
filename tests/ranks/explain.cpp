// What an operation says of itself: predictions of all ranks, and measured times beside predicted ones.
#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

TEST_CASE("a prediction of an operation is the same on all ranks, and that of its plans made off line") {
  const Context context(MPI_COMM_WORLD);
  Grid grid(context, {24, 13 * context.size()}, {.split = {1, context.size()}, .periodic = {true, true}});
  Field<double> field(grid, {.name = "p", .shadow = 2});
  const Halo halo(field);
  const Prediction prediction = predict(halo);
  CHECK(prediction.seconds > 0);
  CHECK(prediction.ranks.size() == static_cast<std::size_t>(context.size()));
  CHECK(prediction.commands[static_cast<std::size_t>(context.rank())].size() == halo.plan().commands.size());
  HaloShape shape;
  shape.extents = {24, 13 * context.size()};
  shape.grid.periodic = {true, true};
  shape.grid.split = {1, context.size()};
  FieldShape one;
  one.name = "p";
  one.shadow = one.width = 2;
  shape.fields = {one};
  const Machine machine = machine_of(context);
  CHECK(plan(machine, shape).predict() == prediction);
  CHECK(plan(machine, shape).explain(context.rank()) == halo.explain() + prediction.text());
}

TEST_CASE("measured times stand beside predicted ones for each command, of the epochs since they were asked for") {
  const Context context(MPI_COMM_WORLD);
  Grid grid(context, {15, 11 * context.size()}, {.split = {1, context.size()}, .periodic = {true, true}});
  Field<double> field(grid, {.name = "q", .shadow = 1});
  for (const char* engine : {"inline", "thread"}) {
    HaloOptions options;
    options.engine = engine;
    Halo halo(field, options);
    halo.start();
    CHECK(error_of([&] { halo.explain(true); }).find("while epoch 1 is active") != std::string::npos);
    halo.wait();
    const std::string before = halo.explain(true);
    CHECK(before.starts_with(halo.explain()));
    CHECK(before.find("nothing yet") != std::string::npos);
    for (int epoch = 0; epoch < 70; ++epoch) {
      for (std::int64_t i = 0; i < 5; ++i) field.data()[i] = epoch + static_cast<double>(i);
      halo.start();
      halo.wait();
    }
    const std::string after = halo.explain(true);
    INFO(after);
    CHECK(after.find("median of the last 64") != std::string::npos);
    const auto lines = std::count(after.begin(), after.end(), '\n') - std::count(before.begin(), before.end(), '\n');
    CHECK(lines == static_cast<std::ptrdiff_t>(halo.plan().commands.size()) + 1);
  }
}

TEST_CASE("all ranks get the same advice on engines, and must mean the same computation") {
  const Context context(MPI_COMM_WORLD);
  Grid grid(context, {24, 13 * context.size()}, {.split = {1, context.size()}, .periodic = {true, true}});
  Field<double> field(grid, {.name = "p", .shadow = 2});
  const Halo halo(field);
  CHECK(verify(halo).ok());
  const Advice advice = advise(halo, 25e-6);
  REQUIRE(advice.ways.size() == 2);
  CHECK(advice.ways[0].engine == "inline");
  CHECK(advice.ways[0].seconds > 25e-6);
  // Where there are more ranks than cores, they also take turns at computing.
  CHECK(advice.ways[0].seconds < context.size() * (25e-6 + 2 * predict(halo).seconds + 1e-12));
  double seconds[2] = {advice.ways[0].seconds, advice.ways[1].seconds};
  double least[2];
  MPI_Allreduce(seconds, least, 2, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  CHECK(least[0] == seconds[0]);
  CHECK(least[1] == seconds[1]);
  CHECK(error_of([&] { advise(halo, -1); }).find("argument 'computation' is -1") != std::string::npos);
  if (context.size() > 1)
    CHECK(error_of([&] { advise(halo, 1e-6 * context.rank()); }).find("'computation'") != std::string::npos);
}
