// How a grid is cut: even and explicit cuts, the automatic split, and what is refused.
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "grid/decompose.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;
using Extents = std::vector<std::int64_t>;
using Split = std::vector<int>;

namespace {

std::string refusal(const Extents& extents, const GridOptions& options, int ranks) {
  try {
    decompose(extents, options, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Split chosen(const Extents& extents, int ranks, const Split& split = {}, const std::vector<bool>& periodic = {}) {
  return decompose(extents, {.split = split, .periodic = periodic}, ranks).split;
}

}  // namespace

TEST_CASE("the first ranks get the cells that are left over, and surplus ranks none") {
  CHECK(even_cuts(10, 4) == Extents{0, 3, 6, 8, 10});
  CHECK(even_cuts(8, 4) == Extents{0, 2, 4, 6, 8});
  CHECK(even_cuts(2, 4) == Extents{0, 1, 2, 2, 2});
  const std::int64_t large = std::numeric_limits<std::int64_t>::max();
  CHECK(even_cuts(large, 3).back() == large);
}

TEST_CASE("boxes are numbered row-major and cover the grid once") {
  const Decomposition cut = decompose(Extents{5, 7, 3}, {.split = {2, 3, 1}}, 6);
  CHECK(cut.coords(4) == std::array<int, kMaxDims>{1, 1, 0});
  std::int64_t cells = 0;
  for (int box = 0; box < 6; ++box) {
    CHECK(cut.box_at(cut.coords(box)) == box);
    cells += cut.box(box).cells();
    for (int other = 0; other < box; ++other) CHECK(intersect(cut.box(box), cut.box(other)).empty());
  }
  CHECK(cells == 5 * 7 * 3);
}

TEST_CASE("the automatic split has the cheapest faces: few cells, those across the last dimension counted twice") {
  CHECK(chosen({64, 64}, 4) == Split{4, 1});
  CHECK(chosen({64, 64, 64}, 8) == Split{4, 2, 1});
  CHECK(chosen({1000, 8}, 4) == Split{4, 1});
  CHECK(chosen({8, 1000}, 4) == Split{1, 4});
  CHECK(chosen({256, 256, 512}, 4) == Split{2, 2, 1});
  CHECK(chosen({64, 64}, 7) == Split{7, 1});
  CHECK(chosen({64}, 5) == Split{5});
}

TEST_CASE("given entries of the split stay, and periodic faces count") {
  CHECK(chosen({64, 64, 64}, 8, {0, 1, 0}) == Split{4, 1, 2});
  CHECK(chosen({64, 64}, 6, {0, 6}) == Split{1, 6});
  // Two parts of a periodic dimension touch twice, of another once.
  CHECK(chosen({96, 64}, 2, {}, {false, false}) == Split{2, 1});
  CHECK(chosen({70, 64}, 2, {}, {true, false}) == Split{2, 1});
  CHECK(chosen({30, 64}, 2, {}, {true, false}) == Split{1, 2});
  CHECK(chosen({64, 64}, 2, {}, {false, true}) == Split{2, 1});
}

TEST_CASE("the automatic split leaves no rank without cells if that is possible") {
  CHECK(chosen({2, 6}, 4) == Split{2, 2});
  CHECK(chosen({3, 4}, 12) == Split{3, 4});
  CHECK(chosen({3, 3}, 16) == Split{4, 4});
}

TEST_CASE("explicit cuts are taken, and settle the split") {
  const Decomposition cut = decompose(Extents{10, 6}, {.cuts = {{0, 7, 7, 10}}}, 6);
  CHECK(cut.split == Split{3, 2});
  CHECK(cut.cuts[0] == Extents{0, 7, 7, 10});
  CHECK(cut.cuts[1] == Extents{0, 3, 6});
  CHECK(cut.box(2).empty());
}

TEST_CASE("what cannot be cut is refused with the numbers") {
  CHECK(refusal({}, {}, 4) == "argument 'extents' has 0 dimensions; 1 to 7 are possible");
  CHECK(refusal(Extents(8, 2), {}, 4) == "argument 'extents' has 8 dimensions; 1 to 7 are possible");
  CHECK(refusal({4, 0}, {}, 4) == "extents[1] is 0; it must be at least 1");
  CHECK(refusal({-3}, {}, 4) == "extents[0] is -3; it must be at least 1");
  CHECK(refusal({1LL << 40, 1LL << 40}, {}, 1).find("extents[1] is 1099511627776") != std::string::npos);
  CHECK(refusal({8, 8}, {.split = {2, 3}}, 4) ==
        "split 2 x 3 makes 6 boxes, but the context has 4 ranks; the product must be equal, or a 0 leaves a dimension "
        "to Tasuki");
  CHECK(
      refusal({8, 8}, {.split = {2, 1}}, 1) ==
      "split 2 x 1 makes 2 boxes, but the context has 1 rank; the product must be equal, or a 0 leaves a dimension to "
      "Tasuki");
  CHECK(refusal({8, 8}, {.split = {1, 1}}, 3) ==
        "split 1 x 1 makes 1 box, but the context has 3 ranks; the product must be equal, or a 0 leaves a dimension to "
        "Tasuki");
  CHECK(refusal({8, 8}, {.split = {3, 0}}, 4) ==
        "split 3 x 0 cannot be completed: 3 does not divide the context's 4 ranks");
  CHECK(refusal({8, 8}, {.split = {4}}, 4) == "argument 'split' has 1 entries (4); the grid has 2 dimensions");
  CHECK(refusal({8}, {.split = {-4}}, 4) == "split[0] is -4; it must be a number of ranks, or 0 to leave it open");
  CHECK(refusal({8, 8, 8, 8}, {.split = {2147483647, 2147483647, 2147483647, 2147483647}}, 4).find("but the context") !=
        std::string::npos);
  CHECK(refusal({8}, {.periodic = {true, true}}, 4) ==
        "argument 'periodic' has 2 entries; the grid has 1 dimensions, and each needs one");
  CHECK(refusal({8, 9}, {.periodic = {true}}, 4) ==
        "argument 'periodic' has 1 entry; the grid has 2 dimensions, and each needs one");
}

TEST_CASE("bad cuts are refused with the entry that is wrong") {
  const auto cuts = [](const Extents& list) { return GridOptions{.split = {2}, .cuts = {list}}; };
  CHECK(refusal({8}, cuts({0, 8}), 2) == "cuts[0] has 2 entries; 2 ranks in that dimension need 3");
  CHECK(refusal({8}, cuts({0, 3, 9}), 2) == "cuts[0] goes from 0 to 9; it must go from 0 to the extent, 8");
  CHECK(refusal({8}, cuts({1, 3, 8}), 2) == "cuts[0] goes from 1 to 8; it must go from 0 to the extent, 8");
  CHECK(refusal({8}, cuts({0, 9, 8}), 2) == "cuts[0] is not ascending: 8 comes after 9");
  CHECK(refusal({8}, {.split = {2}, .cuts = {{}, {0, 8}}}, 2) ==
        "argument 'cuts' has 2 entries; the grid has 1 dimensions");
  CHECK(refusal({8}, {.cuts = {{0}}}, 2) == "cuts[0] has 1 entry; 2 ranks in that dimension need 3");
}
