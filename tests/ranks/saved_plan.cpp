// A plan that was saved is loaded and run; one that does not fit is refused on every rank before anything moves.
#include <doctest/doctest.h>

#include <string>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

double value(const Index& at, int epoch) {
  return static_cast<double>(at[0] * 1000 + at[1] * 10) + epoch;
}

}  // namespace

RANK_TEST("a saved halo plan runs with new memory of the same shapes and gives the same cells") {
  GridOptions options;
  options.periodic = {true, false};
  const Grid grid(ctx, {13, 9}, options);
  Field<double> u(grid, {.name = "u", .shadow = 2});
  Field<double> v(grid, {.name = "u", .shadow = 2});
  std::string saved;
  {
    Halo halo{HaloField(u)};
    saved = to_json(halo.plan());
  }
  Halo live{HaloField(u)};
  SavedPlan again(ctx, plan_from_json(saved), {PlanMemory(v)});
  CHECK(again.plan() == live.plan());
  CHECK(verify(again).ok());
  for (int epoch = 0; epoch < 4; ++epoch) {
    u.for_each([&](const Index& at, double& cell) { cell = value(at, epoch); });
    v.for_each([&](const Index& at, double& cell) { cell = value(at, epoch); });
    live.start();
    again.start();
    again.wait();
    live.wait();
    CHECK(std::equal(u.data(), u.data() + u.bytes() / 8, v.data()));
  }
}

RANK_TEST("a plan that does not fit is refused on every rank, with the reason") {
  const Grid grid(ctx, {12, 8});
  Field<double> u(grid, {.name = "u"});
  Field<double> wide(grid, {.name = "u", .shadow = 3});
  const Halo halo{HaloField(u)};
  const Plan plan = halo.plan();
  const auto refusal = [&](const Plan& p, const std::vector<PlanMemory>& memory) {
    return error_of([&] { const SavedPlan loaded(ctx, p, memory); });
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  if (ctx.size() == 1) return;  // a rank alone has no pieces, and so names no buffers
  CHECK(has(refusal(plan, {}), "for which no memory was given"));
  CHECK(has(refusal(plan, {PlanMemory(wide)}), "but the memory given for it has"));
  Plan other = plan;
  other.rank = plan.rank + 1;
  CHECK(has(refusal(other, {PlanMemory(u)}), "the plan is that of rank"));
  std::vector<double> own(static_cast<std::size_t>(u.bytes() / 8));
  CHECK(has(refusal(plan, {PlanMemory("u", own.data(), u.bytes())}), "give memory of the same kind"));
  // Damaged on the last rank alone: all of them hear of it.
  Plan damaged = plan;
  if (ctx.rank() == ctx.size() - 1 && !damaged.copies.empty()) damaged.copies[0].src_offset += 8;
  CHECK(has(refusal(damaged, {PlanMemory(u)}), ctx.size() > 1 ? "SavedPlan" : ""));
  std::string old = to_json(plan);
  old.replace(old.find("\"format\": "), 11, "\"format\": 1");
  CHECK(has(error_of([&] { plan_from_json(old); }), "format"));
}
