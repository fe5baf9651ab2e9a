// overlaps: right for every layout, and quick for the nests that people use.
#include <doctest/doctest.h>

#include "layout_model.hpp"

using tasuki::Layout;
using namespace layout_model;

namespace {

bool some_twice(Ints offsets) {
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
}

}  // namespace

TEST_CASE("overlaps: agrees with sorting every byte, for random layouts") {
  Random random(13);
  int seen[2] = {0, 0};
  for (int i = 0; i < 4000; ++i) {
    const Pair pair = random.layout(static_cast<int>(random.number(1, 5)), 1500);
    CAPTURE(i);
    CAPTURE(pair.layout.describe());
    const bool expected = some_twice(pair.model.offsets);
    CHECK(pair.layout.overlaps() == expected);
    ++seen[expected];
  }
  CHECK(seen[0] > 500);
  CHECK(seen[1] > 500);
}

TEST_CASE("overlaps: agrees with sorting every byte, for nests whose strides interleave") {
  Random random(14);
  int seen[2] = {0, 0};
  for (int i = 0; i < 4000; ++i) {
    Layout layout = Layout::bytes(random.number(1, 2));
    Model model = model_bytes(layout.size());
    for (std::int64_t dim = random.number(1, 3); dim > 0; --dim) {
      const std::int64_t count = random.number(1, 6), stride = random.number(-40, 40);
      layout = Layout::hvector(count, 1, stride, layout);
      model = model_hvector(count, 1, stride, model);
    }
    CAPTURE(layout.describe());
    const bool expected = some_twice(model.offsets);
    CHECK(layout.overlaps() == expected);
    ++seen[expected];
  }
  CHECK(seen[0] > 300);
  CHECK(seen[1] > 300);
}

TEST_CASE("overlaps: decides large nests without writing them out") {
  const Layout cell = Layout::of<double>();
  const std::int64_t big = std::int64_t{1} << 30;
  CHECK(!Layout::vector(big, 1, 3, cell).overlaps());
  CHECK(!Layout::hvector(big, 1, 8, Layout::hvector(4, 1, 16 * big, cell)).overlaps());             // by columns
  CHECK(!Layout::hvector(1 << 20, 1, 24, Layout::hvector(2, 1, 16, Layout::bytes(4))).overlaps());  // interleaved
  CHECK(Layout::hvector(1 << 20, 1, 24, Layout::hvector(3, 1, 16, Layout::bytes(9))).overlaps());
  CHECK(Layout::hvector(big, 1, 0, cell).overlaps());
  // Even and odd columns of one matrix, as two nests with the same bounds.
  const Layout column = Layout::hvector(1 << 12, 1, 1 << 16, Layout::hvector(1 << 12, 1, 16, cell));
  const std::vector<Layout> two{column, column};
  CHECK(!Layout::structure(Ints{1, 1}, Ints{0, 8}, two).overlaps());
  CHECK(Layout::structure(Ints{1, 1}, Ints{0, 4}, two).overlaps());
  CHECK(Layout::structure(Ints{1, 1}, Ints{0, 1 << 17}, two).overlaps());
}
