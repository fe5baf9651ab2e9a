// Table 2 of the first paper in ratios: what `reflect_init` and `reflect_do` take through xmp.h, and the same by hand.
//   mpirun -n 2 tasuki-bench-directives [--device gpu] [ROWS COLUMNS]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tasuki/tasuki.hpp"
#include "xacc.h"
#include "xmp.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& what) {
  const auto begin = Clock::now();
  what();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> all) {
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

double slowest(double mine) {
  xmp_variable v{&mine, 1, XMP_F64};
  xmp_reduction(XMP_MAX, 1, &v, nullptr);
  return mine;
}

void row(const char* what, double library, double by_hand) {
  if (xmpc_node_num() != 0) return;
  std::printf("%-44s %12.3f %12.3f %8.3f %+10.1f\n", what, library * 1e6, by_hand * 1e6, library / by_hand,
              (library - by_hand) * 1e9);
}

constexpr std::int64_t kWidest = 8;

// The same call on memory of the host or of the GPU.
int allocate(bool gpu, xmp_desc_t array) {
  return gpu ? xacc_allocate(array, nullptr) : xmp_allocate(array, nullptr);
}
int init(bool gpu, xmp_desc_t array, const xmp_reflect_options* how) {
  return gpu ? xacc_reflect_init(1, &array, how) : xmp_reflect_init(1, &array, how);
}
int run(bool gpu, xmp_desc_t array) {
  return gpu ? xacc_reflect_do(1, &array, XACC_SYNC) : xmp_reflect_do(1, &array);
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu";
  std::int64_t rows = 256;
  std::int64_t columns = 256;
  CLI::App app("What reflect_init and reflect_do take through xmp.h or xacc.h, and the same by hand");
  app.add_option("--device", device, "where the array is")->check(CLI::IsMember({"cpu", "gpu"}));
  app.add_option("rows", rows);
  app.add_option("columns", columns);
  CLI11_PARSE(app, argc, argv);
  xmp_init(argc, argv);
  const bool gpu = device == "gpu";
  const int ranks = xmp_num_nodes();
  // By hand, over a context of its own.
  tasuki::Context context(argc, argv);

  xmp_desc_t p = nullptr;
  xmp_desc_t t = nullptr;
  xmp_desc_t u = nullptr;
  const std::int64_t nodes[] = {ranks};
  const xmp_range ranges[] = {{0, rows, 1}, {0, columns, 1}};
  const xmp_distribution distributions[] = {{XMP_BLOCK, 0, nullptr}, {XMP_NOT_DISTRIBUTED, 0, nullptr}};
  const std::int64_t extents[] = {rows, columns};
  const xmp_width shadow[] = {{kWidest, kWidest}, {0, 0}};
  xmp_array_spec spec{};
  spec.name = "u";
  spec.type = XMP_F64;
  spec.ndims = 2;
  spec.extents = extents;
  xmp_nodes(&p, 1, nodes);
  xmp_template(&t, 2, ranges);
  xmp_distribute(t, distributions, p);
  xmp_array(&u, &spec, t);
  xmp_shadow(u, shadow);

  tasuki::FieldOptions options{.name = "u"};
  options.shadow = 0;
  options.shadow.lo[0] = options.shadow.hi[0] = kWidest;
  if (gpu) options.memory = tasuki::Memory::device;
  // As the language cuts: the first ranks have all that they can.
  std::vector<std::vector<std::int64_t>> cuts(2);
  for (int r = 0; r <= ranks; ++r) cuts[0].push_back(std::min<std::int64_t>(rows, r * ((rows + ranks - 1) / ranks)));
  const auto grid_of = [&] { return tasuki::Grid(context, {rows, columns}, {.split = {ranks, 1}, .cuts = cuts}); };

  if (xmpc_node_num() == 0)
    std::printf("%d ranks, %lld x %lld doubles on %ss\n%-44s %12s %12s %8s %10s\n", ranks, static_cast<long long>(rows),
                static_cast<long long>(columns), gpu ? "GPU" : "host", "", "library us", "by hand us", "ratio",
                "ns more");

  // All from nothing: memory, grid, field and halo.
  std::vector<double> library;
  std::vector<double> by_hand;
  for (int n = 0; n < 30; ++n) {
    context.barrier();
    library.push_back(seconds([&] {
      allocate(gpu, u);
      init(gpu, u, nullptr);
    }));
    context.barrier();
    by_hand.push_back(seconds([&] {
      const tasuki::Grid grid = grid_of();
      const tasuki::Field<double> field(grid, options);
      const tasuki::Halo halo(field);
    }));
  }
  row("memory and reflect_init", slowest(median(library)), slowest(median(by_hand)));

  // A plan for another width of an array that was reflected before.
  const tasuki::Grid grid = grid_of();
  const tasuki::Field<double> field(grid, options);
  library.clear();
  by_hand.clear();
  for (std::int64_t below = 0; below <= kWidest; ++below)
    for (std::int64_t above = 1; above <= kWidest; ++above) {
      tasuki::Width width = 0;
      width.lo[0] = below;
      width.hi[0] = above;
      const xmp_width layers[] = {{below, above}, {0, 0}};
      const xmp_reflect_options how{layers, nullptr, 0, nullptr};
      context.barrier();
      library.push_back(seconds([&] { init(gpu, u, &how); }));
      context.barrier();
      by_hand.push_back(seconds([&] { const tasuki::Halo halo(tasuki::HaloField(field, width)); }));
    }
  row("reflect_init", slowest(median(library)), slowest(median(by_hand)));

  const xmp_width one[] = {{1, 1}, {0, 0}};
  const xmp_reflect_options how{one, nullptr, 0, nullptr};
  tasuki::Width width = 0;
  width.lo[0] = width.hi[0] = 1;
  tasuki::Halo halo(tasuki::HaloField(field, width));
  init(gpu, u, &how);
  // Runs, in turn, each first as often as the other, so that both see the same machine.
  const auto in_turn = [&](const char* what, const auto& through_library, const auto& direct) {
    library.clear();
    by_hand.clear();
    constexpr int kRuns = 2000;
    for (int n = 0; n < 61; ++n)
      for (const bool first : {true, false}) {
        context.barrier();
        if (first == (n % 2 == 0))
          library.push_back(seconds([&] { through_library(kRuns); }) / kRuns);
        else
          by_hand.push_back(seconds([&] { direct(kRuns); }) / kRuns);
      }
    row(what, slowest(median(library)), slowest(median(by_hand)));
  };
  in_turn(
      "reflect_do",
      [&](int runs) {
        for (int i = 0; i < runs; ++i) run(gpu, u);
      },
      [&](int runs) {
        for (int i = 0; i < runs; ++i) {
          halo.start();
          halo.wait();
        }
      });
  if (gpu) {
    xacc_set_queue(0, nullptr);
    in_turn(
        "reflect_do in a queue",
        [&](int runs) {
          for (int i = 0; i < runs; ++i) xacc_reflect_do(1, &u, 0);
          tasuki::synchronize(context, nullptr);
        },
        [&](int runs) {
          for (int i = 0; i < runs; ++i) halo.run(nullptr);
          tasuki::synchronize(context, nullptr);
        });
  }
  return xmp_finalize();
}
