// Every constructor of Layout names the bytes, and has the bounds, that a naive expansion of MPI's definitions gives.
#include <doctest/doctest.h>

#include "layout_model.hpp"

using tasuki::Layout;
using namespace layout_model;

namespace {

void check_same(const Layout& layout, const Model& model) {
  CHECK(expand(layout) == model.offsets);
  CHECK(layout.size() == static_cast<std::int64_t>(model.offsets.size()));
  CHECK(layout.lower_bound() == model.lower);
  CHECK(layout.extent() == model.extent());
  const auto [low, high] = std::minmax_element(model.offsets.begin(), model.offsets.end());
  CHECK(layout.true_lower_bound() == (model.offsets.empty() ? 0 : *low));
  CHECK(layout.true_upper_bound() == (model.offsets.empty() ? 0 : *high + 1));
}

}  // namespace

TEST_CASE("layout constructors: each names the bytes of its naive expansion, in order") {
  const Layout cell = Layout::of<double>();
  const Model model = model_bytes(8);
  check_same(Layout(), Model{});
  check_same(Layout::bytes(13), model_bytes(13));
  check_same(Layout::of<float>(5), model_bytes(20));
  check_same(Layout::contiguous(4, cell), model_hvector(1, 4, 0, model));
  check_same(Layout::vector(3, 2, 5, cell), model_hvector(3, 2, 40, model));
  check_same(Layout::vector(3, 2, -5, cell), model_hvector(3, 2, -40, model));
  check_same(Layout::hvector(3, 2, 41, cell), model_hvector(3, 2, 41, model));
  check_same(Layout::indexed(Ints{2, 0, 1}, Ints{5, 100, -3}, cell), model_hindexed({2, 0, 1}, {40, 800, -24}, model));
  check_same(Layout::hindexed(Ints{1, 2}, Ints{7, 3}, cell), model_hindexed({1, 2}, {7, 3}, model));
  check_same(Layout::subarray(Ints{4, 5, 6}, Ints{2, 3, 1}, Ints{1, 2, 5}, cell),
             model_subarray({4, 5, 6}, {2, 3, 1}, {1, 2, 5}, model));
  const Model one = model_bytes(1), four = model_bytes(4);
  check_same(Layout::structure(Ints{1, 1, 1}, Ints{0, 4, 8},
                               std::vector<Layout>{Layout::bytes(1), Layout::bytes(4), Layout::bytes(1)}),
             model_structure({{0, &one}, {4, &four}, {8, &one}}));
}

TEST_CASE("layout constructors: zero counts and block lengths name nothing and have no extent") {
  const Layout cell = Layout::resized(Layout::of<double>(), -8, 100);
  for (const Layout& empty : {Layout(), Layout::bytes(0), Layout::contiguous(0, cell), Layout::vector(0, 3, 5, cell),
                              Layout::vector(3, 0, 5, cell), Layout::hvector(0, 1, 8, cell),
                              Layout::indexed(Ints{}, Ints{}, cell), Layout::indexed(Ints{0, 0}, Ints{3, 4}, cell),
                              Layout::structure(Ints{0}, Ints{7}, std::vector<Layout>{cell})}) {
    CHECK(empty.size() == 0);
    CHECK(empty.extent() == 0);
    CHECK(empty.lower_bound() == 0);
    CHECK(empty.runs() == 0);
    CHECK(empty == Layout());
    CHECK(empty.pattern() == tasuki::Pattern::empty);
  }
  // As in MPI, an empty element still has the extent that it was given, and an empty box that of its array.
  CHECK(Layout::contiguous(3, Layout::resized(Layout(), 0, 10)).extent() == 30);
  CHECK(Layout::subarray(Ints{4, 4}, Ints{0, 2}, Ints{1, 1}, Layout::bytes(8)).extent() == 128);
}

TEST_CASE("layout bounds: those of resized elements stick, and win over plain ones") {
  const Layout plain = Layout::bytes(8);
  const Layout wide = Layout::resized(plain, -4, 20);
  CHECK(Layout::contiguous(3, wide).lower_bound() == -4);
  CHECK(Layout::contiguous(3, wide).extent() == 60);
  const Layout both = Layout::structure(Ints{1, 1}, Ints{100, 0}, std::vector<Layout>{plain, wide});
  CHECK(both.lower_bound() == -4);
  CHECK(both.extent() == 20);
  CHECK(both.true_upper_bound() == 108);
  CHECK(Layout::contiguous(2, both).extent() == 40);
  const Layout box = Layout::subarray(Ints{4}, Ints{2}, Ints{1}, plain);
  CHECK(Layout::structure(Ints{1, 1}, Ints{0, 500}, std::vector<Layout>{box, plain}).extent() == 32);
  CHECK(Layout::contiguous(3, Layout::resized(plain, 0, -16)).lower_bound() == -32);
}

TEST_CASE("layout constructors: random nests of all constructors agree with the naive expansion") {
  Random random(20240601);
  for (int i = 0; i < 3000; ++i) {
    const Pair pair = random.layout(static_cast<int>(random.number(1, 5)), 1500);
    CAPTURE(i);
    check_same(pair.layout, pair.model);
  }
}

TEST_CASE("layout constructors: nested ten deep") {
  Layout layout = Layout::bytes(1);
  Model model = model_bytes(1);
  for (int depth = 0; depth < 10; ++depth) {  // 1024 bytes, an extent three times as long at each level
    const std::int64_t stride = 2 * model.extent() + 1;
    layout = Layout::hvector(2, 1, stride, layout);
    model = model_hvector(2, 1, stride, model);
  }
  check_same(layout, model);
  CHECK(layout.blocks().size() == 8);  // seven dimensions, the three outermost unrolled
  CHECK(layout.blocks()[0].dims.size() == 7);
}

TEST_CASE("layout constructors: 64-bit sizes cost no more than small ones") {
  const std::int64_t big = std::int64_t{1} << 40;
  const Layout line = Layout::bytes(big);
  CHECK(line.size() == big);
  CHECK(Layout::contiguous(big, Layout::bytes(16)) == Layout::bytes(16 * big));
  const Layout sparse = Layout::vector(big, 1, 2, Layout::of<double>());
  CHECK(sparse.size() == 8 * big);
  CHECK(sparse.extent() == 16 * big - 8);
  CHECK(sparse.runs() == big);
  CHECK(sparse.blocks().size() == 1);
  CHECK(!sparse.overlaps());
  const Layout grid = Layout::hvector(big, 1, 1 << 20, Layout::hvector(1 << 12, 1, 16, Layout::of<double>()));
  CHECK(grid.runs() == big << 12);
  CHECK(grid.true_upper_bound() == ((big - 1) << 20) + (((1 << 12) - 1) << 4) + 8);
  // The end of one grid touches the start of the next.
  CHECK(Layout::hvector(2, 1, 0, Layout::contiguous(2, grid)).runs() == (big << 14) - 2);
}
