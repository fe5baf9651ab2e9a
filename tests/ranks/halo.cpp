// Halos: random grids, widths, splits, paths and engines; every cell holds a number made from its global index and the
// iteration, and every plan goes through the verifier.
#include "tasuki/halo.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "layout/encoding.hpp"
#include "random_split.hpp"
#include "rank_test.hpp"
#include "session/collective.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr double kUntouched = -1;

std::int64_t linear(const Grid& grid, const Index& at) {
  std::int64_t index = 0;
  for (int d = 0; d < grid.ndims(); ++d) {
    const std::int64_t n = grid.extent(d);
    index = index * n + ((at[static_cast<std::size_t>(d)] % n) + n) % n;
  }
  return index;
}

double value(const Grid& grid, const Index& at, int field, int iteration) {
  return static_cast<double>(linear(grid, at) * 8 + field) + 1e7 * iteration;
}

// Calls f(global index, side count, inside width, element) for every allocated cell of this rank.
template <class F>
void for_each_cell(const Field<double>& field, const Width& width, F&& f) {
  const Box own = field.owned();
  if (own.empty()) return;
  const Grid& grid = field.grid();
  const Index extents = field.extents();
  const Index strides = field.strides();
  Index local{};
  for (;;) {
    Index at{};
    int sides = 0;
    bool inside = true;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(own.ndims); ++d) {
      at[d] = own.lo[d] + local[d] - field.shadow().lo[d];
      offset += local[d] * strides[d];
      if (at[d] < own.lo[d] || at[d] >= own.hi[d]) {
        ++sides;
        inside = inside && at[d] >= own.lo[d] - width.lo[d] && at[d] < own.hi[d] + width.hi[d] &&
                 (grid.periodic(static_cast<int>(d)) || (at[d] >= 0 && at[d] < grid.extent(static_cast<int>(d))));
      }
    }
    f(at, sides, inside, field.data()[offset]);
    int d = own.ndims - 1;
    for (; d >= 0 && ++local[static_cast<std::size_t>(d)] == extents[static_cast<std::size_t>(d)]; --d) {
      local[static_cast<std::size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

struct Case {
  std::vector<std::int64_t> extents;
  GridOptions grid;
  std::vector<Width> shadows;
  std::vector<Width> widths;
  std::vector<int> copies;
  bool corners = true;
  bool alternating = false;
  std::vector<std::vector<std::int64_t>> cuts = {};
};

Case random_case(int ranks, std::mt19937& random) {
  Case c;
  const int dims = 1 + static_cast<int>(random() % 4);
  const int fields = 1 + static_cast<int>(random() % 3);
  c.grid.split = random_split(ranks, dims, random);
  for (int d = 0; d < dims; ++d) {
    // Sometimes fewer cells than ranks, so that ranks are empty and the next owner is several hops away.
    c.extents.push_back(1 + static_cast<std::int64_t>(random() % (dims > 2 ? 9 : 13)));
    c.grid.periodic.push_back(random() % 2 == 0);
  }
  for (int f = 0; f < fields; ++f) {
    Width shadow(0);
    Width width(0);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
      shadow.lo[d] = static_cast<std::int64_t>(random() % 4);
      shadow.hi[d] = static_cast<std::int64_t>(random() % 4);
      width.lo[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shadow.lo[d] + 1));
      width.hi[d] = static_cast<std::int64_t>(random() % static_cast<unsigned>(shadow.hi[d] + 1));
    }
    c.shadows.push_back(shadow);
    c.widths.push_back(width);
    c.copies.push_back(1 + static_cast<int>(random() % 2));
  }
  c.corners = random() % 3 != 0;
  c.alternating = random() % 2 == 0;
  c.cuts = random_cuts(c.extents, 2, random);
  return c;
}

void run_case(const Context& ctx, const Case& c, const std::string& path, const std::string& engine) {
  const Grid grid(ctx, c.extents, c.grid);
  std::vector<Field<double>> fields;
  std::vector<HaloField> entries;
  for (std::size_t f = 0; f < c.shadows.size(); ++f) {
    fields.emplace_back(grid,
                        FieldOptions{"f" + std::to_string(f), c.shadows[f], c.copies[f], static_cast<std::int64_t>(f)});
    entries.emplace_back(fields.back(), c.widths[f]);
  }
  HaloOptions options;
  options.path = path;
  options.engine = engine;
  options.corners = c.corners;
  options.alternating = c.alternating;
  options.cuts = c.cuts;
  Halo halo(entries, options);
  const VerifyReport report = verify(halo);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(plan_from_text(to_text(halo.plan())) == halo.plan());
  int wrong = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for_each_cell(fields[f], c.widths[f], [&](const Index& at, int sides, bool, double& cell) {
        if (sides == 0) {
          cell = value(grid, at, static_cast<int>(f), iteration);
        } else if (!c.alternating || iteration < 1) {
          cell = kUntouched;
        }
      });
      // In alternation the shadow of the other copy is the halo's from the first start on.
      if (c.alternating && c.copies[f] == 2 && iteration == 0) {
        std::fill_n(fields[f].next(), fields[f].bytes() / 8, kUntouched);
      }
    }
    halo.start();
    if (iteration % 2 == 0) halo.test();
    halo.wait();
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for_each_cell(fields[f], c.widths[f], [&](const Index& at, int sides, bool inside, double& cell) {
        const bool filled = sides == 0 || (inside && (c.corners || sides == 1));
        if (cell != (filled ? value(grid, at, static_cast<int>(f), iteration) : kUntouched)) ++wrong;
      });
      if (c.copies[f] == 2) fields[f].swap();
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

RANK_TEST("random grids, widths and splits fill exactly the shadows asked for, on every path and engine, thread too") {
  std::mt19937 random(1234);
  const int cases = ctx.size() > 8 ? 4 : 12;
  for (int i = 0; i < cases; ++i) {
    const Case c = random_case(ctx.size(), random);
    for (const auto& path : host_paths(ctx)) {
      const std::string engine = random() % 3 == 0 ? "thread" : "inline";
      CAPTURE(i);
      CAPTURE(path);
      CAPTURE(engine);
      run_case(ctx, c, path, engine);
    }
  }
}

RANK_TEST("9 x 10 x 11 cells with halos 1, 3 and 2, all periodic, every split of the ranks") {
  std::mt19937 random(7);
  for (int i = 0; i < 3; ++i) {
    Case c;
    c.extents = {9, 10, 11};
    c.grid.split = random_split(ctx.size(), 3, random);
    c.grid.periodic = {true, true, true};
    c.shadows = {Width({1, 3, 2}, {1, 3, 2})};
    c.widths = c.shadows;
    c.copies = {1};
    run_case(ctx, c, "auto", "inline");
  }
}

RANK_TEST(
    "more lines of short runs than a core's caches hold are handed over in slices of all faces, both ways at once") {
  if (ctx.size() == 1 || ctx.size() > 4) return;
  Case c;
  c.extents = {181, 103, 5 * ctx.size() + 1};
  c.grid.split = {1, 1, ctx.size()};
  c.grid.periodic = {true, true, true};
  c.shadows = {Width({1, 0, 2}, {0, 1, 1}), Width(1)};
  c.widths = c.shadows;
  c.copies = {1, 2};
  c.alternating = true;
  for (const char* engine : {"inline", "thread"}) {
    CAPTURE(engine);
    run_case(ctx, c, "shared:eager", engine);
  }
  const Grid grid(ctx, c.extents, c.grid);
  const Field<double> field(grid, {.shadow = c.shadows[0]});
  HaloOptions options;
  options.path = "shared:eager";
  const Halo halo(HaloField(field), options);
  const auto signals = std::count_if(halo.plan().commands.begin(), halo.plan().commands.end(),
                                     [](const Command& command) { return command.verb == Verb::signal; });
  CHECK(signals > 8);
}

RANK_TEST("memory that the user brings is exchanged on every path") {
  GridOptions options;
  options.periodic = {true, true};
  const Grid grid(ctx, {31, 37}, options);
  for (const auto& path : host_paths(ctx)) {
    if (path == "shared:put" || path == "shared:pull")
      continue;  // nobody can map it; the test below shows what is said
    const Box own = grid.owned();
    std::vector<double> memory(static_cast<std::size_t>((own.extent(0) + 2) * (own.extent(1) + 2)));
    const Field<double> field(grid, std::vector<double*>{memory.data()}, {.name = "mine"});
    HaloOptions halo_options;
    halo_options.path = path;
    Halo halo(HaloField(field), halo_options);
    CHECK(verify(halo).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      int wrong = 0;
      field.for_each([&](const Index& at, double& cell) { cell = value(grid, at, 0, iteration); });
      halo.start();
      halo.wait();
      for_each_cell(field, 1, [&](const Index& at, int, bool, double& cell) {
        if (cell != value(grid, at, 0, iteration)) ++wrong;
      });
      CHECK(wrong == 0);
    }
  }
}

RANK_TEST(
    "a reverse halo adds every shadow into its owner, and the result does not depend on path or engine, thread too") {
  std::mt19937 random(99);
  for (int i = 0; i < 6; ++i) {
    Case c = random_case(ctx.size(), random);
    std::vector<std::vector<double>> results;
    for (const auto& path : host_paths(ctx)) {
      if (path == "shared:put" || path == "shared:read") continue;  // these cannot add
      const Grid grid(ctx, c.extents, c.grid);
      const Field<double> field(grid, {.name = "f", .shadow = c.shadows[0]});
      HaloOptions options;
      options.reverse = true;
      options.corners = c.corners;
      options.cuts = c.cuts;
      options.path = path;
      options.engine = results.size() % 2 == 0 ? "inline" : "thread";
      Halo halo(HaloField(field, c.widths[0]), options);
      INFO(verify(halo).text());
      CHECK(verify(halo).ok());
      std::vector<double> result;
      for (int iteration = 0; iteration < 3; ++iteration) {
        // Numbers whose sum depends on the order of adding, different on every rank.
        std::mt19937 noise(static_cast<unsigned>(ctx.rank() + 1000 * iteration));
        double before = 0;
        double added = 0;
        for_each_cell(field, c.widths[0], [&](const Index&, int sides, bool inside, double& cell) {
          cell = std::ldexp(static_cast<double>(noise()), static_cast<int>(noise() % 40) - 20);
          if (sides == 0) before += cell;
          if (sides > 0 && inside && (c.corners || sides == 1)) added += cell;
        });
        halo.start();
        halo.wait();
        double after = 0;
        for_each_cell(field, c.widths[0], [&](const Index&, int sides, bool, double& cell) {
          if (sides == 0) after += cell;
          if (sides == 0) result.push_back(cell);
        });
        std::array<double, 3> sums{};
        for (const auto& text : gather_texts(runtime_of(ctx), encoded(std::array{before, added, after}), "adding")) {
          const auto theirs = decoded<std::array<double, 3>>(text);
          for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += theirs[k];
        }
        CHECK(sums[2] == doctest::Approx(sums[0] + sums[1]));
      }
      results.push_back(std::move(result));
      CHECK(results.back() == results.front());
    }
  }
}

RANK_TEST("overlap computes boundary and interior once each and fills the shadow of the new copy") {
  GridOptions options;
  options.periodic = {true, true};
  const Grid grid(ctx, {17, 23}, options);
  Field<double> u(grid, {.name = "u", .shadow = 2, .copies = 2});
  HaloOptions halo_options;
  halo_options.alternating = true;
  Halo halo(HaloField(u), halo_options);
  CHECK(verify(halo).ok());
  for (int iteration = 0; iteration < 5; ++iteration) {
    u.swap();
    std::int64_t cells = 0;
    overlap(halo, u, 2, [&](const Box& box) {
      cells += box.cells();
      for (auto i = box.lo[0]; i < box.hi[0]; ++i) {
        for (auto j = box.lo[1]; j < box.hi[1]; ++j) {
          const Index at{u.owned().lo[0] + i - 2, u.owned().lo[1] + j - 2};
          u.data()[i * u.strides()[0] + j] = value(grid, at, 0, iteration);
        }
      }
    });
    CHECK(cells == u.owned().cells());
    int wrong = 0;
    for_each_cell(u, 2, [&](const Index& at, int, bool, double& cell) {
      if (cell != value(grid, at, 0, iteration)) ++wrong;
    });
    CHECK(wrong == 0);
  }
}

RANK_TEST("wrong arguments of a halo are named on every rank") {
  const Grid grid(ctx, {40, 40});
  Field<double> u(grid, {.name = "u", .shadow = 1});
  CHECK(error_of([&] { Halo halo(HaloField(u, 2)); }).find("width 2/2 (below/above) of field u in dimension 0") !=
        std::string::npos);
  CHECK(error_of([&] { Halo halo(std::vector<HaloField>{u, u}); }).find("fields u and u overlap") != std::string::npos);
  HaloOptions options;
  options.path = "carrier pigeon";
  CHECK(error_of([&] {
          Halo halo(HaloField(u), options);
        }).find("there is no path 'carrier pigeon'; give one of auto, mpi") != std::string::npos);
  options.path = "shared:eager,pigeon";
  CHECK(error_of([&] { Halo halo(HaloField(u), options); }).find("there is no path 'pigeon'; give one of auto, mpi") !=
        std::string::npos);
  options.path = "shared:eager,mpi";
  CHECK(verify(Halo(HaloField(u), options)).ok());
  options.path = "auto";
  options.engine = "steam";
  CHECK(error_of([&] {
          Halo halo(HaloField(u), options);
        }).find("there is no engine 'steam'; give one of auto, inline") != std::string::npos);
  struct Pair {
    char bytes[3];
  };
  const Field<Pair> odd(grid, {.name = "odd"});
  HaloOptions reverse;
  reverse.reverse = true;
  CHECK(error_of([&] { Halo halo(HaloField(odd), reverse); }).find("reverse needs numbers") != std::string::npos);
  if (ctx.size() > 1) {
    HaloOptions differing;
    differing.corners = ctx.rank() != 1;
    const std::string text = error_of([&] { Halo halo(HaloField(u), differing); });
    CHECK(text.find("corners") != std::string::npos);
    CHECK(text.find("rank 1") != std::string::npos);
    // Alike in all but that they are two.
    const Field<double> v(grid, {.name = "u", .shadow = 1});
    CHECK(error_of([&] { Halo halo(HaloField(ctx.rank() == 1 ? v : u)); }).find("argument 'field u' differs") !=
          std::string::npos);
    const Grid across(ctx, {40, 40}, {.split = {1, ctx.size()}});
    CHECK(error_of([&] { Field<double> w(ctx.rank() == 1 ? across : grid); }).find("argument 'grid' differs") !=
          std::string::npos);
    std::vector<double> memory(static_cast<std::size_t>(u.bytes() / 8));
    const Field<double> wrapped(grid, std::vector<double*>{memory.data()}, {.name = "mine"});
    HaloOptions put;
    put.path = "shared:put";
    CHECK(error_of([&] { Halo halo(HaloField(wrapped), put); }).find("no path can carry") != std::string::npos);
  }
}

RANK_TEST(
    "a list of paths that allows nothing between two ranks is an error on every rank, also on those without pieces") {
  if (ctx.size() == 1) return;
  const Grid grid(ctx, {2, 5}, {.split = {ctx.size(), 1}});  // the first two ranks have a row each
  std::vector<double> memory(1000);
  const Field<double> mine(grid, std::vector<double*>{memory.data()}, {.name = "mine", .shadow = 1});
  HaloOptions options;
  options.path = "i=shared:put,shared:pull";
  const std::string text = error_of([&] { Halo halo(HaloField(mine), options); });
  CAPTURE(text);
  CHECK(text.find("no path can carry 'mine ") != std::string::npos);
  CHECK(text.find(" when path 'shared:put,shared:pull' is forced (") != std::string::npos);
  options.path = "i=auto,k=shared";
  CHECK(error_of([&] { Halo halo(HaloField(mine), options); }).find("there is no direction 'k'; this halo has i, j") !=
        std::string::npos);
  options.path = "i=auto,j=shared:put";
  Halo halo(HaloField(mine), options);  // nothing goes along j
  halo.start();
  halo.wait();
}

RANK_TEST("fields of the same name are told apart, and one without a name is refused") {
  const Grid grid(ctx, {12, 10}, {.periodic = {true, true}});
  std::vector<Field<double>> fields;
  for (const char* name : {"u", "u#2", "u", "u#1", "u"})
    fields.emplace_back(grid, FieldOptions{.name = name, .shadow = 1});
  Halo halo(std::vector<HaloField>(fields.begin(), fields.end()));
  CHECK(verify(halo).ok());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i].for_each([&](const Index& at, double& cell) { cell = value(grid, at, static_cast<int>(i), 1); });
  }
  halo.start();
  halo.wait();
  int wrong = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for_each_cell(fields[i], fields[i].shadow(), [&](const Index& at, int, bool, double& cell) {
      if (cell != value(grid, at, static_cast<int>(i), 1)) ++wrong;
    });
  }
  CHECK(wrong == 0);
  CHECK(error_of([&] { Field<double> none(grid, {.name = ""}); }).find("option 'name' is empty") != std::string::npos);
}

RANK_TEST("what one rank alone does wrong is an error on all, and nothing is the worse for it") {
  const Grid grid(ctx, {24});
  Field<double> pair(grid, {.name = "pair", .shadow = 1, .copies = 2});
  HaloOptions options;
  options.alternating = true;
  Halo halo(HaloField(pair), options);
  CHECK(error_of([&] { halo.run(nullptr); }).find("streams are for operations on GPU memory") != std::string::npos);
  for (int i = 0; i < 3; ++i) {
    halo.start();
    halo.wait();
    pair.swap();
  }
  const int last = ctx.size() - 1;
  if (ctx.rank() == last) halo.free();
  const std::string text = error_of([&] { verify(halo); });
  CHECK(text.find("rank " + std::to_string(last)) != std::string::npos);
  CHECK(text.find("plan after free") != std::string::npos);
  ctx.barrier();
}

RANK_TEST("a field in use cannot be freed, an operation cannot be started twice, and alternation is checked") {
  GridOptions options;
  options.periodic = {true};
  const Grid grid(ctx, {64}, options);
  Field<double> u(grid, {.name = "u"});
  {
    Halo halo{HaloField(u)};
    CHECK(error_of([&] { u.free(); }).find("Field 'u': free() was called while 1 operation uses it") !=
          std::string::npos);
    halo.wait();  // not active: returns at once
    CHECK(halo.test());
    halo.start();
    CHECK(halo.active());
    const std::string twice = error_of([&] { halo.start(); });
    CHECK(twice.find("start while epoch 1 is still active") != std::string::npos);
    CHECK(error_of([&] { halo.free(); }).find("free while epoch 1 is active") != std::string::npos);
    halo.wait();
    halo.free();
    CHECK(error_of([&] { halo.start(); }).find("start after free") != std::string::npos);
  }
  u.free();
  CHECK(error_of([&] { Halo halo{HaloField(u)}; }).find("freed") != std::string::npos);
  Field<double> pair(grid, {.name = "pair", .copies = 2});
  HaloOptions alternating;
  alternating.alternating = true;
  Halo halo(HaloField(pair), alternating);
  halo.start();
  halo.wait();
  CHECK(error_of([&] { halo.start(); }).find("call swap exactly once between two starts") != std::string::npos);
}

RANK_TEST(
    "operations may be started and waited for in different orders on different ranks, any number active, thread too") {
  GridOptions options;
  options.periodic = {true, true};
  const Grid grid(ctx, {24, 24}, options);
  for (const auto& path : host_paths(ctx)) {
    constexpr std::size_t kCount = 5;
    std::vector<Field<double>> fields;
    std::vector<Halo> halos;
    for (std::size_t i = 0; i < kCount; ++i) {
      fields.emplace_back(
          grid, FieldOptions{.name = "f" + std::to_string(i), .shadow = static_cast<std::int64_t>(1 + i % 2)});
      HaloOptions halo_options;
      halo_options.path = path;
      halo_options.engine = i == 3 ? "thread" : "inline";
      halos.emplace_back(HaloField(fields.back()), halo_options);
    }
    std::mt19937 random(static_cast<unsigned>(ctx.rank()));
    for (int iteration = 0; iteration < 6; ++iteration) {
      std::array<std::size_t, kCount> order{0, 1, 2, 3, 4};
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < kCount; ++i) {
        fields[i].for_each(
            [&](const Index& at, double& cell) { cell = value(grid, at, static_cast<int>(i), iteration); });
      }
      for (const auto i : order) halos[i].start();
      std::shuffle(order.begin(), order.end(), random);
      for (const auto i : order) halos[i].wait();
      int wrong = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        for_each_cell(fields[i], fields[i].shadow(), [&](const Index& at, int, bool, double& cell) {
          if (cell != value(grid, at, static_cast<int>(i), iteration)) ++wrong;
        });
      }
      CHECK(wrong == 0);
    }
  }
}
