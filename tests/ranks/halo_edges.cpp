// Halos with mirrored edges that run in C++: on every path and engine, beside `overlap`, and from a saved plan.
// Random ones against a serial model are in tests/python/ranks/test_edges.py, off line ones in
// tests/plan/halo_edges.cpp.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/saved_plan.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kRows = 7;

// Walls below and above dimension 0, values on the wall of dimension 1 from below, dimension 2 periodic.
const char* const kEdges = "u: i=-face, j=-cell/face; p: i=face/cell, j=face";

double value(const Index& at, int iteration) {
  return static_cast<double>(1 + at[0] * 10000 + at[1] * 100 + at[2]) + 0.5 * iteration;
}

// The image of a global index outside n cells; the sign changes with it.
std::int64_t image(std::int64_t at, std::int64_t n, const char* below, const char* above, double& sign) {
  if (at >= 0 && at < n) return at;
  std::string word = at < 0 ? below : above;
  if (word[0] == '-') {
    sign = -sign;
    word.erase(0, 1);
  }
  const std::int64_t sum = at < 0 ? (word == "face" ? -1 : 0) : 2 * n - (word == "face" ? 1 : 2);
  return sum - at;
}

int wrong_cells(const Field<double>& field, bool is_u, int iteration) {
  const Grid& grid = field.grid();
  const Box own = field.owned();
  if (own.empty()) return 0;
  int wrong = 0;
  for (auto i = own.lo[0] - 2; i < own.hi[0] + 2; ++i) {
    for (auto j = own.lo[1] - 2; j < own.hi[1] + 2; ++j) {
      for (auto k = own.lo[2] - 2; k < own.hi[2] + 2; ++k) {
        double sign = 1;
        const std::int64_t depth = grid.extent(2);
        const Index from{
            is_u ? image(i, grid.extent(0), "-face", "-face", sign) : image(i, grid.extent(0), "face", "cell", sign),
            is_u ? image(j, grid.extent(1), "-cell", "face", sign) : image(j, grid.extent(1), "face", "face", sign),
            ((k % depth) + depth) % depth};
        const Index strides = field.strides();
        const double found = field.data()[(i - own.lo[0] + 2) * strides[0] + (j - own.lo[1] + 2) * strides[1] +
                                          (k - own.lo[2] + 2) * strides[2]];
        if (found != sign * value(from, iteration)) ++wrong;
      }
    }
  }
  return wrong;
}

void fill(const Field<double>& field, int iteration) {
  std::fill_n(field.data(), field.bytes() / 8, -1e9);
  field.for_each([&](const Index& at, double& cell) { cell = value(at, iteration); });
}

}  // namespace

RANK_TEST("mirrored edges meet exchanged and periodic dimensions on every path and engine, thread too") {
  const Grid grid(ctx, {kRows, 5, 3 * ctx.size() + 1}, {.periodic = {false, false, true}});
  const Field<double> u(grid, {.name = "u", .shadow = 2});
  const Field<double> p(grid, {.name = "p", .shadow = 2, .pad = 3});
  for (const auto& path : host_paths(ctx)) {
    if (path == "shared:put" || path == "shared:read") continue;  // these cannot change signs across ranks
    for (const char* engine : {"inline", "thread"}) {
      CAPTURE(path);
      CAPTURE(engine);
      HaloOptions options;
      options.path = path;
      options.engine = engine;
      options.edges = kEdges;
      Halo halo(std::vector<HaloField>{u, p}, options);
      INFO(verify(halo).text());
      CHECK(verify(halo).ok());
      for (int iteration = 0; iteration < 3; ++iteration) {
        fill(u, iteration);
        fill(p, iteration);
        halo.start();
        halo.wait();
        CHECK(wrong_cells(u, true, iteration) == 0);
        CHECK(wrong_cells(p, false, iteration) == 0);
      }
    }
  }
}

RANK_TEST("the boundary of an overlap must cover the cells that edges mirror") {
  const Grid grid(ctx, {8, 4 * ctx.size()}, {.split = {1, ctx.size()}});
  const Field<double> field(grid, {.name = "u", .shadow = 1});
  HaloOptions options;
  options.edges = "i=face/cell";
  Halo halo(HaloField(field), options);
  CHECK(error_of([&] {
          overlap(halo, field, 1, [](const Box&) {});
        }).find("argument 'width' is 1/1 (below/above) in dimension 0, but the halo sends 1/2 cells") !=
        std::string::npos);
  std::int64_t cells = 0;
  overlap(halo, field, Width({1, 1}, {2, 1}), [&](const Box& box) { cells += box.cells(); });
  CHECK(cells == field.owned().cells());
}

RANK_TEST("a saved plan keeps the mirrors of its halo, and others are refused") {
  const Grid grid(ctx, {kRows, 5, 3 * ctx.size() + 1}, {.split = {1, 1, ctx.size()}, .periodic = {false, false, true}});
  const Field<double> u(grid, {.name = "u", .shadow = 2});
  HaloOptions options;
  options.edges = "i=-face, j=-cell/face";
  const Plan plan = plan_from_text(to_text(Halo(HaloField(u), options).plan()));
  SavedPlan saved(ctx, plan, {PlanMemory(u)});
  fill(u, 4);
  saved.start();
  saved.wait();
  CHECK(wrong_cells(u, true, 4) == 0);
  Plan other = plan;
  bool changed = false;
  for (Expect& e : other.expects) {
    for (auto k = e.first_copy; k < e.first_copy + e.copy_count && e.op == ReduceOp::negate && !changed; ++k) {
      other.copies[static_cast<std::size_t>(k)].src_offset +=
          2 * u.strides()[0] * 8;  // one row would be the other mirror
      changed = true;
    }
  }
  CHECK(changed);
  CHECK(error_of([&] {
          SavedPlan wrong(ctx, other, {PlanMemory(u)});
        }).find("the plan is not one for field 'u' on this grid") != std::string::npos);
}
