// Which rank gets which box, by name: row, column, blocks, by hops on the links of a machine's networks, or as given.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "grid/placement.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;

namespace {

Machine on_torus(std::vector<int> extents) {
  int ranks = 1;
  for (const int extent : extents) ranks *= extent;
  Machine machine = Machine::uniform(ranks, 1, ranks, true);
  machine.inside = {.kind = Network::Kind::torus, .extents = std::move(extents), .bandwidth = 4e9};
  return machine;
}

Placement mapped(const Machine& machine, std::vector<std::int64_t> extents, std::vector<int> split,
                 const std::string& mapping, bool periodic = false) {
  GridOptions options;
  options.split = std::move(split);
  options.periodic.assign(extents.size(), periodic);
  options.mapping = mapping;
  return placed(extents, options, machine);
}

LinkLoad load(const Placement& placement, const Machine& machine) {
  return link_load(placement.cut, placement.rank_of_box, machine);
}

bool is_permutation(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<int>(i)) return false;
  return true;
}

std::string refusal(const GridOptions& options) {
  try {
    placed(std::vector<std::int64_t>{8, 8}, options, Machine::uniform(4, 2, 2));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("on a ring of 8 the boxes of a 2 x 4 grid lie so that the busiest link carries less") {
  const Machine ring = on_torus({8});
  const Placement row = mapped(ring, {128, 128, 256}, {2, 4, 1}, "row");
  const Placement hops = mapped(ring, {128, 128, 256}, {2, 4, 1}, "hops");
  CHECK(is_permutation(hops.rank_of_box));
  // Row by row the faces across the first dimension go over four links each, and all of them one way round.
  CHECK(load(row, ring).busiest == 4 * 32 * 256 + 64 * 256);
  CHECK(load(hops, ring).busiest < load(row, ring).busiest);
  CHECK(load(hops, ring).hops < load(row, ring).hops);
  for (int rank = 0; rank < 8; ++rank)
    CHECK(hops.rank_of_box[static_cast<std::size_t>(hops.box_of_rank[static_cast<std::size_t>(rank)])] == rank);
}

TEST_CASE("a grid that is the torus lies on it without detours, whatever the order of dimensions") {
  for (const auto& [torus, split] : {std::pair<std::vector<int>, std::vector<int>>{{2, 4}, {2, 4}},
                                     {{2, 4}, {4, 2}},
                                     {{4, 4}, {4, 4}},
                                     {{2, 8}, {8, 2}},
                                     {{3, 4}, {4, 3}}}) {
    const Machine machine = on_torus(torus);
    const Placement hops = mapped(machine, {480, 480}, split, "hops");
    CHECK(is_permutation(hops.rank_of_box));
    Wide faces = 0;  // each way
    faces += Wide{split[0] - 1} * 480 + Wide{split[1] - 1} * 480;
    INFO(split[0], " x ", split[1], " on ", torus[0], " x ", torus[1]);
    CHECK(static_cast<std::int64_t>(load(hops, machine).hops) == static_cast<std::int64_t>(2 * faces));
  }
}

TEST_CASE("by hops it is a permutation, the same every time, and never worse than the other mappings") {
  std::mt19937 random(11);
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)) + 1; };
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<std::int64_t> extents;
    std::vector<int> split;
    int ranks = 1;
    for (int d = 0; d < up_to(3); ++d) {
      extents.push_back(up_to(40));
      split.push_back(up_to(4));
      ranks *= split.back();
    }
    Machine machine = Machine::uniform(ranks, up_to(2), 0);
    if (trial % 3 == 0) machine.outside = {.kind = Network::Kind::switched, .extents = {}, .bandwidth = 1e9};
    if (trial % 3 == 1) machine.outside = {.kind = Network::Kind::torus, .extents = {ranks}, .bandwidth = 1e9};
    const bool periodic = trial % 2 == 0;
    const Placement hops = mapped(machine, extents, split, "hops", periodic);
    CHECK(is_permutation(hops.rank_of_box));
    CHECK(hops.rank_of_box == mapped(machine, extents, split, "hops", periodic).rank_of_box);
    for (const char* other : {"row", "column", "blocks"}) {
      const Placement placement = mapped(machine, extents, split, other, periodic);
      CHECK(is_permutation(placement.rank_of_box));
      if (trial % 3 != 2) CHECK(!(load(placement, machine) < load(hops, machine)));
    }
  }
}

TEST_CASE("mappings by name and as given") {
  const Machine machine = Machine::uniform(6, 1, 0);
  CHECK(mapped(machine, {6, 6}, {2, 3}, "").rank_of_box == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(mapped(machine, {6, 6}, {2, 3}, "row").rank_of_box == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(mapped(machine, {6, 6}, {2, 3}, "column").rank_of_box == std::vector<int>{0, 2, 4, 1, 3, 5});
  GridOptions options;
  options.split = {2, 3};
  options.mapping = "given";
  options.given = {5, 3, 1, 0, 2, 4};
  const Placement given = placed(std::vector<std::int64_t>{6, 6}, options, machine);
  CHECK(given.rank_of_box == options.given);
  CHECK(given.box_of_rank == std::vector<int>{3, 2, 4, 1, 5, 0});
}

TEST_CASE("a mapping that there is not, or that is no permutation, is refused") {
  CHECK(refusal({.mapping = "rows"}) == "option 'mapping' is 'rows'; it is row, column, blocks, hops or given");
  CHECK(refusal({.mapping = "given"}) ==
        "option 'given' has 0 entries, but the grid has 4 boxes; give the rank of each box");
  CHECK(refusal({.mapping = "given", .given = {0, 1, 2, 4}}) ==
        "option 'given' names rank 4 for box 3; there are ranks 0 to 3");
  CHECK(refusal({.mapping = "given", .given = {0, 1, -1, 3}}) ==
        "option 'given' names rank -1 for box 2; there are ranks 0 to 3");
  CHECK(refusal({.mapping = "given", .given = {2, 1, 0, 2}}) ==
        "option 'given' names rank 2 for box 0 and for box 3; every rank has one box");
  CHECK(refusal({.given = {0, 1, 2, 3}}) == "option 'given' is for mapping 'given', but option 'mapping' is 'row'");
  CHECK(refusal({.reorder = true, .mapping = "row"}) ==
        "option 'mapping' is 'row', but option 'reorder' asks for 'hops'; give one of them");
}
