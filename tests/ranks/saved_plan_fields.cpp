// A loaded plan is for the field that is given: another grid, shadow or order of cells of the same size is refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/saved_plan.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

struct Shape {
  std::vector<std::int64_t> extents;
  GridOptions grid;
  Width shadow = 2;
  std::int64_t pad = 0;
};

Field<double> field_of(const Context& ctx, const Shape& shape) {
  return Field<double>(Grid(ctx, shape.extents, shape.grid), {.name = "u", .shadow = shape.shadow, .pad = shape.pad});
}

}  // namespace

RANK_TEST("a loaded plan is refused for fields of equal size whose cells lie elsewhere, on every rank") {
  const int ranks = ctx.size();
  if (ranks == 1) return;
  const Shape shape{{6 * ranks, 10}, {.split = {ranks, 1}, .periodic = {true, false}}};
  Field<double> u = field_of(ctx, shape);
  Shape turned = shape;  // local parts of 10 x 14 in place of 14 x 10 bytes: the same size, other rows
  turned.extents = {10, 6 * ranks};
  turned.grid = {.split = {1, ranks}, .periodic = {true, false}};
  Shape closed = shape;
  closed.grid.periodic = {false, false};
  Shape other = shape;  // 10 x 14 cells with a shadow on one side only
  other.shadow.lo[0] = 1;
  other.shadow.hi[0] = 3;
  for (const bool reverse : {false, true}) {
    HaloOptions options;
    options.reverse = reverse;
    const Plan plan = Halo(HaloField(u), options).plan();
    CHECK(error_of([&] { const SavedPlan loaded(ctx, plan, {PlanMemory(u)}); }) == "no error");
    for (const Shape& wrong : {turned, closed, other}) {
      const Field<double> v = field_of(ctx, wrong);
      CHECK(v.bytes() == u.bytes());
      const std::string text = error_of([&] { const SavedPlan loaded(ctx, plan, {PlanMemory(v)}); });
      CHECK_MESSAGE(text.find("the plan is not one for field 'u' on this grid: it takes ") != std::string::npos, text);
    }
    // A width that is narrower than the shadow is a plan for the field all the same.
    const Plan narrow = Halo(HaloField(u, 1), options).plan();
    CHECK(error_of([&] { const SavedPlan loaded(ctx, narrow, {PlanMemory(u)}); }) == "no error");
  }
}

RANK_TEST("a plan whose commands and promises are shifted alike is refused for its field") {
  if (ctx.size() == 1) return;
  Field<double> u = field_of(ctx, {{6 * ctx.size(), 9}, {.split = {ctx.size(), 1}, .periodic = {true, false}}, 1});
  Plan plan = Halo(HaloField(u)).plan();
  for (auto& copy : plan.copies) copy.src_offset += 8;
  const std::string text = error_of([&] { const SavedPlan loaded(ctx, plan, {PlanMemory(u)}); });
  CHECK_MESSAGE((text.find("not one for field 'u'") != std::string::npos || text.find("leaves") != std::string::npos),
                text);
}

RANK_TEST("fields whose rows are padded, on ranks without cells too, exchange as others do") {
  for (const bool last : {false, true}) {
    // In the last dimension more ranks than cells, or in the first.
    const std::int64_t few = ctx.size() > 1 ? ctx.size() - 1 : 1;
    Shape shape{{few, 7}, {.split = {ctx.size(), 1}, .periodic = {true, true}}, 0, 3};
    if (last) shape = {{7, few}, {.split = {1, ctx.size()}, .periodic = {true, true}}, 0, 3};
    const int whole = last ? 0 : 1;
    shape.shadow.lo[static_cast<std::size_t>(whole)] = 2;
    const Grid grid(ctx, shape.extents, shape.grid);
    // Memory of the user's: none where there are no cells.
    const bool empty = grid.owned().empty();
    std::vector<double> own(empty ? 0 : 4000);
    Field<double> u(grid, {empty ? nullptr : own.data()}, {.name = "u", .shadow = shape.shadow, .pad = shape.pad});
    CHECK((u.bytes() == 0) == empty);
    Halo halo{HaloField(u)};
    CHECK(verify(halo).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      u.for_each([&](const Index& at, double& cell) { cell = static_cast<double>(at[0] * 100 + at[1] + iteration); });
      halo.start();
      halo.wait();
      if (empty) continue;
      const Index first{grid.owned().lo[0], grid.owned().lo[1]};
      Index wrapped = first;
      wrapped[static_cast<std::size_t>(whole)] = grid.extent(whole) - 2;
      CHECK(own[0] == static_cast<double>(wrapped[0] * 100 + wrapped[1] + iteration));
    }
  }
}
