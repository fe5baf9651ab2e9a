// The overlap helper: a width that would send cells before they are computed is refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

Width two_sided(std::int64_t lo, std::int64_t hi) {
  Width width(0);
  width.lo[0] = lo;
  width.hi[0] = hi;
  return width;
}

}  // namespace

RANK_TEST("an overlap that is narrower than what the halo sends is refused on every rank, unless it is meant") {
  const Grid grid(ctx, {9 * ctx.size(), 6}, {.split = {ctx.size(), 1}, .periodic = {true, false}});
  Field<double> u(grid, {.name = "u", .shadow = 3});
  Field<double> v(grid, {.name = "v", .shadow = 3});
  const Field<double> other(grid, {.name = "w"});
  Halo halo({HaloField(u, 2), HaloField(v, two_sided(0, 3))});
  std::int64_t cells = 0;
  const auto count = [&](const Box& box) { cells += box.extent(0) * box.extent(1); };
  const auto refusal = [&](const FieldBase& field, const Width& width) {
    return error_of([&] { overlap(halo, field, width, count); });
  };
  CHECK(refusal(u, 1) ==
        "overlap: rank " + std::to_string(ctx.rank()) +
            ": argument 'width' is 1/1 (below/above) in dimension 0, but the halo sends 2/2 cells there, which would "
            "not all be computed before it starts; give a width of at least 2/2, or say Narrow::meant");
  CHECK(refusal(u, two_sided(1, 2)).find("is 1/2 (below/above)") != std::string::npos);
  CHECK(refusal(u, two_sided(2, 1)).find("is 2/1 (below/above)") != std::string::npos);
  // What is sent downwards is the upper shadow's width.
  CHECK(refusal(v, two_sided(2, 0)).find("sends 3/0 cells") != std::string::npos);
  CHECK(refusal(other, 2).find("sends 3/2 cells") != std::string::npos);
  CHECK(cells == 0);
  CHECK_FALSE(halo.active());
  CHECK(refusal(u, two_sided(2, 2)) == "no error");  // nothing is sent across dimension 1
  CHECK(refusal(v, two_sided(3, 0)) == "no error");
  CHECK(refusal(other, 3) == "no error");
  CHECK(error_of([&] { overlap(halo, u, 1, count, Narrow::meant); }) == "no error");
  const Box own = u.local_owned();
  CHECK(cells == 4 * own.extent(0) * own.extent(1));
}
