// Boxes: counting cells and intersecting.
#include <doctest/doctest.h>

#include "tasuki/box.hpp"
#include "tasuki/error.hpp"

using tasuki::Box;

TEST_CASE("a box counts its cells, and none if it is empty in a dimension") {
  CHECK(Box{2, {1, 2}, {4, 7}}.cells() == 15);
  CHECK(Box{2, {1, 2}, {1, 7}}.empty());
  CHECK(Box{2, {3, 2}, {1, 7}}.cells() == 0);
  CHECK(Box{}.cells() == 0);
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_AS((void)Box({2, {0, 0}, {large, large}}).cells(), tasuki::Error);
  CHECK(Box{3, {0, 0, 5}, {large, large, 5}}.cells() == 0);
}

TEST_CASE("boxes intersect in the cells that both have") {
  CHECK(intersect(Box{2, {0, 0}, {4, 4}}, Box{2, {2, 1}, {9, 3}}) == Box{2, {2, 1}, {4, 3}});
  CHECK(intersect(Box{1, {0}, {4}}, Box{1, {4}, {9}}).empty());
  CHECK(intersect(Box{1, {0}, {4}}, Box{1, {7}, {9}}).empty());
}
