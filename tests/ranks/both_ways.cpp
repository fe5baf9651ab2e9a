// Exchanges, by which paths are measured: both ranks get the other's bytes and no others, on every path.
#include "calibrate/both_ways.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

RANK_TEST("two ranks send each other a layout at once, with new data every time, on every path") {
  if (ctx.size() == 1) return;
  const int last = ctx.size() - 1;
  constexpr std::size_t kCells = 1000;
  const auto shared = shared_alloc(ctx, 2 * kCells * sizeof(double));
  auto* const from = reinterpret_cast<double*>(shared.get());
  double* const to = from + kCells;
  const Layout layouts[] = {Layout::of<double>(1), Layout::of<double>(kCells),
                            Layout::vector(kCells / 4, 1, 4, Layout::of<double>())};
  for (const auto& path : host_paths(ctx)) {
    for (const Layout& layout : layouts) {
      BothWays exchange(ctx, 0, last, shared.get(), reinterpret_cast<std::byte*>(to), layout, {.path = path});
      CHECK(verify(exchange).ok());
      const int other = ctx.rank() == 0 ? last : 0;
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (std::size_t i = 0; i < kCells; ++i) {
          from[i] = static_cast<double>(i) + 10000.0 * (ctx.rank() + 1) + 0.25 * epoch;
          to[i] = -1;
        }
        ctx.barrier();
        exchange.start();
        exchange.wait();
        ctx.barrier();
        if (ctx.rank() != 0 && ctx.rank() != last) continue;
        std::vector<double> expected(kCells, -1);
        const auto stride = static_cast<std::size_t>(layout.size() == kCells * 2 ? 4 : 1);
        for (std::size_t i = 0; i * sizeof(double) < static_cast<std::size_t>(layout.size()); ++i) {
          expected[i * stride] = static_cast<double>(i * stride) + 10000.0 * (other + 1) + 0.25 * epoch;
        }
        CAPTURE(path);
        CHECK(std::vector<double>(to, to + kCells) == expected);
      }
    }
  }
}
