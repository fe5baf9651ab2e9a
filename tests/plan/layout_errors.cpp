// Bad arguments of Layout's constructors are errors that name the operation, the argument and its value.
#include <doctest/doctest.h>

#include <limits>

#include "layout_model.hpp"
#include "tasuki/error.hpp"

using layout_model::Ints;
using tasuki::Error;
using tasuki::Layout;

TEST_CASE("layout errors: negative counts and lengths") {
  const Layout cell = Layout::of<double>();
  CHECK_THROWS_WITH_AS(Layout::bytes(-1), "Layout::bytes: count is -1; it must be 0 or more", Error);
  CHECK_THROWS_WITH_AS(Layout::contiguous(-2, cell), "Layout::contiguous: count is -2; it must be 0 or more", Error);
  CHECK_THROWS_WITH_AS(Layout::vector(2, -3, 1, cell), "Layout::vector: block_length is -3; it must be 0 or more",
                       Error);
  CHECK_THROWS_WITH_AS(Layout::hvector(-2, 1, 1, cell), "Layout::hvector: count is -2; it must be 0 or more", Error);
  CHECK_THROWS_WITH_AS(Layout::indexed(Ints{1, -1}, Ints{0, 1}, cell),
                       "Layout::indexed: block_lengths is -1; it must be 0 or more", Error);
  CHECK_THROWS_AS(Layout::hindexed(Ints{-1}, Ints{0}, cell), Error);
  CHECK_THROWS_AS(Layout::structure(Ints{-1}, Ints{0}, std::vector<Layout>{cell}), Error);
  CHECK_THROWS_AS(Layout::subarray(Ints{4}, Ints{-1}, Ints{0}, cell), Error);
}

TEST_CASE("layout errors: lists of unequal length") {
  const Layout cell = Layout::of<double>();
  CHECK_THROWS_WITH_AS(Layout::indexed(Ints{1, 1}, Ints{0}, cell),
                       "Layout::indexed: 1 displacements but 2 block lengths; give one displacement to each block",
                       Error);
  CHECK_THROWS_AS(Layout::hindexed(Ints{1}, Ints{0, 1}, cell), Error);
  CHECK_THROWS_WITH_AS(Layout::structure(Ints{1}, Ints{0}, std::vector<Layout>{cell, cell}),
                       "Layout::structure: 2 elements but 1 block lengths; give one element to each block", Error);
  CHECK_THROWS_WITH_AS(Layout::subarray(Ints{4, 4}, Ints{1}, Ints{0, 0}, cell),
                       "Layout::subarray: sizes has 2 dimensions, subsizes 1, starts 2; they must be equal", Error);
}

TEST_CASE("layout errors: a box that leaves its array, and too many dimensions") {
  const Layout cell = Layout::of<double>();
  CHECK_THROWS_WITH_AS(Layout::subarray(Ints{9, 6}, Ints{2, 4}, Ints{0, 3}, cell),
                       "Layout::subarray: dimension 1: the box of 4 cells from 3 leaves the array of 6 cells", Error);
  CHECK_THROWS_AS(Layout::subarray(Ints{6}, Ints{4}, Ints{-1}, cell), Error);
  CHECK_THROWS_AS(Layout::subarray(Ints{6}, Ints{1}, Ints{std::numeric_limits<std::int64_t>::max()}, cell), Error);
  CHECK_THROWS_WITH_AS(Layout::subarray(Ints{}, Ints{}, Ints{}, cell),
                       "Layout::subarray: sizes has 0 dimensions; 1 to 7 are possible", Error);
  const Ints eight(8, 2);
  CHECK_THROWS_AS(Layout::subarray(eight, eight, Ints(8, 0), cell), Error);
}

TEST_CASE("layout errors: offsets and sizes that leave 64 bits") {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  const Layout cell = Layout::of<double>();
  CHECK_THROWS_WITH_AS(Layout::contiguous(kMax, cell),
                       "Layout::contiguous: count is 9223372036854775807, which takes a size or byte offset out of 64 "
                       "bits; make it smaller",
                       Error);
  CHECK_THROWS_AS(Layout::vector(2, 1, kMax, cell), Error);
  CHECK(Layout::vector(1, 1, kMax, cell) == cell);  // a stride that is never taken
  CHECK_THROWS_AS(Layout::hvector(3, 1, kMin / 2 - 1, cell), Error);
  CHECK_THROWS_AS(Layout::hindexed(Ints{1}, Ints{kMax - 3}, cell), Error);
  CHECK_THROWS_AS(Layout::hindexed(Ints{1, 1}, Ints{kMin, kMax - 8}, cell), Error);  // each fits, the extent does not
  CHECK_THROWS_AS(Layout::indexed(Ints{1}, Ints{kMax / 4}, cell), Error);
  CHECK_THROWS_AS(Layout::resized(cell, kMax, 1), Error);
  CHECK_THROWS_AS(Layout::subarray(Ints{kMax / 2, 4}, Ints{1, 1}, Ints{0, 0}, cell), Error);
  // A size that leaves 64 bits although every offset is small.
  const Layout again = Layout::resized(Layout::bytes(1), 0, 0);
  const Layout often = Layout::contiguous(std::int64_t{1} << 40, again);
  CHECK(often.size() == std::int64_t{1} << 40);
  CHECK_THROWS_AS(Layout::contiguous(std::int64_t{1} << 40, Layout::resized(often, 0, 0)), Error);
  CHECK_THROWS_AS(Layout::contiguous(kMax, Layout::contiguous(kMax, Layout::resized(Layout(), 0, 1 << 20))), Error);
}

TEST_CASE("layout errors: an irregular pattern too large to write out is refused, not begun for ever") {
  const Layout odd = Layout::hindexed(Ints{1, 1, 1}, Ints{0, 3, 11}, Layout::bytes(2));
  const Layout uneven = Layout::hindexed(Ints{1, 2, 4}, Ints{0, 30, 110}, Layout::bytes(2));
  CHECK(Layout::contiguous(1000, odd).size() == 6000);
  CHECK_THROWS_AS(Layout::contiguous(std::int64_t{1} << 40, uneven), Error);
}
