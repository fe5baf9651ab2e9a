// Which rank gets which box: heavy faces stay inside islands, and it is never worse than row-major.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "grid/decompose.hpp"

using namespace tasuki;

namespace {

std::vector<int> islands_of(int ranks, int size) {
  std::vector<int> islands(ranks);
  for (int rank = 0; rank < ranks; ++rank) islands[rank] = rank / size;
  return islands;
}

std::int64_t crossing(const Decomposition& cut, const std::vector<int>& placed, const std::vector<int>& islands) {
  return static_cast<std::int64_t>(crossing_cells(cut, placed, islands));
}

bool is_permutation_of_ranks(std::vector<int> placed) {
  std::sort(placed.begin(), placed.end());
  for (std::size_t i = 0; i < placed.size(); ++i)
    if (placed[i] != static_cast<int>(i)) return false;
  return true;
}

}  // namespace

TEST_CASE("on 2 x 2 ranks in islands of two, the neighbours across the long faces share an island") {
  const std::vector<int> islands = islands_of(4, 2);
  const Decomposition wide = decompose(std::vector<std::int64_t>{10, 1000}, {.split = {2, 2}}, 4);
  CHECK(crossing(wide, {}, islands) == 1000);
  CHECK(place(wide, islands) == std::vector<int>{0, 2, 1, 3});
  CHECK(crossing(wide, place(wide, islands), islands) == 10);

  const Decomposition tall = decompose(std::vector<std::int64_t>{1000, 10}, {.split = {2, 2}}, 4);
  CHECK(place(tall, islands) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("crossing cells: both faces of a periodic pair, uneven boxes, and no faces with empty boxes") {
  const std::vector<int> apart{0, 1};
  const auto cut = [](std::vector<std::int64_t> extents, GridOptions options) {
    return decompose(extents, options, 2);
  };
  CHECK(crossing(cut({4, 6}, {.split = {2, 1}}), {}, apart) == 6);
  CHECK(crossing(cut({4, 6}, {.split = {2, 1}, .periodic = {true, true}}), {}, apart) == 12);
  CHECK(crossing(cut({4, 6}, {.split = {2, 1}, .cuts = {{0, 4, 4}}}), {}, apart) == 0);
  CHECK(crossing(cut({4, 6}, {.split = {2, 1}}), {}, {7, 7}) == 0);
}

TEST_CASE("islands become blocks of the grid of ranks") {
  const std::vector<int> islands = islands_of(64, 8);
  const Decomposition cube = decompose(std::vector<std::int64_t>{64, 64, 64}, {.split = {4, 4, 4}}, 64);
  const auto placed = place(cube, islands);
  CHECK(is_permutation_of_ranks(placed));
  // 2 x 2 x 2 ranks an island: one cut of the three in each dimension is between islands.
  CHECK(crossing(cube, placed, islands) == 3 * 64 * 64);
  CHECK(crossing(cube, {}, islands) > 3 * 64 * 64);
}

TEST_CASE("placement is a permutation and never worse than row-major, whatever the islands") {
  std::mt19937 random(7);
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)) + 1; };
  for (int trial = 0; trial < 300; ++trial) {
    const int ndims = up_to(4);
    std::vector<std::int64_t> extents;
    GridOptions options;
    int ranks = 1;
    for (int d = 0; d < ndims; ++d) {
      extents.push_back(up_to(40));
      options.split.push_back(up_to(4));
      options.periodic.push_back(up_to(2) == 1);
      ranks *= options.split.back();
    }
    std::vector<int> islands = islands_of(ranks, up_to(6));
    if (trial % 2 == 0) std::shuffle(islands.begin(), islands.end(), random);
    const Decomposition cut = decompose(extents, options, ranks);
    const auto placed = place(cut, islands);
    CHECK(is_permutation_of_ranks(placed));
    CHECK(crossing(cut, placed, islands) <= crossing(cut, {}, islands));
    CHECK(placed == place(cut, islands));
  }
}
