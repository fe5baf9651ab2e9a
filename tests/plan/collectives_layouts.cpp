// Collectives on memory with layouts: plans of all ranks are verified for every algorithm, on every path, in host and
// GPU memory, with random layouts that differ from rank to rank; and what is said about layouts that cannot be.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "../strided_blocks.hpp"
#include "collective_shapes.hpp"
#include "collectives/algorithm.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

void draw_layouts(CollectiveShape& shape, int ranks, Random& random) {
  strided_blocks::add_layouts(shape, ranks, [&](int rank, bool of_in) {
    return strided_blocks::random_blocks(random, strided_blocks::blocks_of_side(shape, ranks, rank, of_in),
                                         size_of(shape.type));
  });
}

std::string error_of_plan(const CollectiveShape& shape) {
  try {
    plan(Machine::uniform(3, 3, 0), shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("every algorithm is sound on layouts that differ from rank to rank, for 1 to 33 ranks") {
  Random random(17);
  for (const CollectiveKind kind : all_collectives()) {
    if (kind == CollectiveKind::barrier) continue;
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (const int ranks : {1, 2, 3, 5, 8, 12, 17, 33}) {
        CollectiveShape shape = random_shape(kind, ranks, random);
        if (ranks > 12) shape.counts.clear();
        if (ranks > 12) shape.count = 1 + below(random, kind == CollectiveKind::alltoall ? 2 : 5);
        shape.algorithm = algorithm->name;
        draw_layouts(shape, ranks, random);
        check(Machine::uniform(ranks, ranks, below(random, 3) == 0 ? std::min(3, ranks) : 0), shape);
      }
    }
  }
}

TEST_CASE("layouts are sound on every path, and in chunks") {
  Random random(18);
  const std::vector<std::string> paths{
      "auto", "shared:put", "shared:pull", "shared:eager", "shared:read", "shared:put,shared:eager", "mpi"};
  for (const CollectiveKind kind : all_collectives()) {
    if (kind == CollectiveKind::barrier) continue;
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (int i = 0; i < 12; ++i) {
        const int ranks = 2 + static_cast<int>(below(random, 5));
        CollectiveShape shape = random_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
        if (shape.path == "shared:put" || shape.path == "shared:read") shape.path += ",shared:eager";
        if (shape.path == "shared:pull") shape.shared = true;
        if (algorithm->settings != nullptr && below(random, 2) == 0) shape.chunk = 16 + below(random, 100);
        draw_layouts(shape, ranks, random);
        check(Machine::uniform(ranks, ranks, 0), shape);
      }
    }
  }
}

TEST_CASE("layouts are sound in memory of GPUs") {
  Random random(19);
  for (const CollectiveKind kind : all_collectives()) {
    if (kind == CollectiveKind::barrier) continue;
    for (const Algorithm* algorithm : algorithms_for(kind)) {
      for (const int ranks : {2, 3, 4, 8}) {
        CollectiveShape shape = random_shape(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.memory = Memory::device;
        shape.shared = true;
        draw_layouts(shape, ranks, random);
        const Machine machine = Machine::uniform(ranks, ranks, below(random, 2) == 0 ? 2 : 0, true);
        check(machine, shape);
      }
    }
  }
}

TEST_CASE("layouts that cannot be are named, with the rank whose they are") {
  CollectiveShape shape;
  shape.kind = CollectiveKind::allreduce;
  shape.type = DType::f64;
  shape.count = 4;
  const Layout good = Layout::vector(4, 1, 2, Layout::of<double>());
  const std::vector<Layout> all(3, good);
  shape.in_layouts = shape.out_layouts = all;
  CHECK(error_of_plan(shape) == "no error");
  shape.in_layouts[1] = Layout::of<double>(3);
  CHECK(error_of_plan(shape) == "argument 'in_layouts': that of rank 1 (24 B) names 24 bytes; it must name 32");
  shape.in_layouts = {good};
  CHECK(error_of_plan(shape) == "argument 'in_layouts' has 1 layout for 3 ranks");
  shape.in_layouts = all;
  shape.out_layouts[2] = Layout::hvector(4, 1, 4, Layout::of<double>());
  CHECK(error_of_plan(shape).find("that of rank 2") != std::string::npos);
  CHECK(error_of_plan(shape).find("names a byte twice") != std::string::npos);
  shape.out_layouts = all;
  shape.in_layouts[0] = Layout::vector(8, 1, 2, Layout::of<float>());
  CHECK(error_of_plan(shape).find("no whole number of elements of f64") != std::string::npos);
  // What a broadcast's root only reads may name a byte twice.
  CollectiveShape broadcast;
  broadcast.kind = CollectiveKind::broadcast;
  broadcast.root = 1;
  broadcast.count = 32;
  broadcast.in_layouts = all;
  broadcast.in_layouts[1] = Layout::hvector(4, 1, 0, Layout::of<double>());
  CHECK(error_of_plan(broadcast) == "no error");
  broadcast.root = 0;
  CHECK(error_of_plan(broadcast).find("names a byte twice") != std::string::npos);
  broadcast.root = 1;
  broadcast.algorithm = "trees";
  broadcast.count = 1 << 20;
  broadcast.in_layouts.assign(3, Layout::vector(1 << 17, 1, 2, Layout::of<double>()));
  broadcast.chunk = 8;
  CHECK(error_of_plan(broadcast).find("option 'chunk' is 8 bytes") != std::string::npos);
}
