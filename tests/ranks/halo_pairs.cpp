// Halos cut in the contiguous dimension: both faces of a field take turns in the ring of `shared:eager`, number by
// number, for elements and widths of all sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <vector>

#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// The value of a cell by its global index, which wraps around; every bit of small types is in use.
template <class T>
T value(const Grid& grid, const Index& at, int iteration) {
  std::int64_t number = iteration * 37;
  for (int d = 0; d < grid.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t n = grid.extent(d);
    number = number * 131 + (at[i] % n + n) % n;
  }
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(number) % 251);
  } else {
    return static_cast<T>(static_cast<float>(number % 100003));
  }
}

// Calls f(global index, cell, owned) for all cells in memory.
template <class T, class F>
void for_all(const Field<T>& field, F&& f) {
  const Box own = field.owned();
  const Index extents = field.extents();
  const Index strides = field.strides();
  const auto ndims = static_cast<std::size_t>(own.ndims);
  Index local{};
  for (;;) {
    Index at{};
    std::int64_t offset = 0;
    bool owned = true;
    for (std::size_t d = 0; d < ndims; ++d) {
      at[d] = own.lo[d] + local[d] - field.shadow().lo[d];
      offset += local[d] * strides[d];
      owned = owned && at[d] >= own.lo[d] && at[d] < own.hi[d];
    }
    f(at, field.data()[offset], owned);
    std::size_t d = ndims;
    while (d > 0 && ++local[d - 1] == extents[d - 1]) local[--d] = 0;
    if (d == 0) return;
  }
}

// Whether two moves of the plan take turns on the packed side.
bool has_pairs(const Plan& plan) {
  return std::any_of(plan.copies.begin(), plan.copies.end(), [](const StridedCopy& copy) {
    if (copy.ndims < 2) return false;
    const auto& two = copy.dims[static_cast<std::size_t>(copy.ndims) - 1];
    return two.count == 2 && (two.dst_stride == copy.block || two.src_stride == copy.block);
  });
}

template <class T>
void exchange(const Context& ctx, const std::vector<std::int64_t>& extents, const Width& width, const char* engine) {
  GridOptions options;
  options.split.assign(extents.size(), 1);
  options.split.back() = ctx.size();
  options.periodic.assign(extents.size(), true);
  const Grid grid(ctx, extents, options);
  const Field<T> field(grid, {.name = "f", .shadow = width});
  HaloOptions halo_options;
  halo_options.path = "shared:eager";
  halo_options.engine = engine;
  Halo halo(HaloField(field), halo_options);
  INFO(verify(halo).text());
  CHECK(verify(halo).ok());
  // With two ranks both faces come from one neighbour.
  if (ctx.size() == 2 && width.lo.front() == width.hi.front()) CHECK(has_pairs(halo.plan()));
  for (int iteration = 0; iteration < 5; ++iteration) {
    for_all(field, [&](const Index& at, T& cell, bool owned) { cell = owned ? value<T>(grid, at, iteration) : T(7); });
    halo.start();
    halo.wait();
    int wrong = 0;
    for_all(field,
            [&](const Index& at, const T& cell, bool) { wrong += cell == value<T>(grid, at, iteration) ? 0 : 1; });
    CHECK(wrong == 0);
  }
  ctx.barrier();
}

template <class T>
void exchange_all(const Context& ctx) {
  const std::int64_t n = ctx.size();
  CAPTURE(sizeof(T));
  exchange<T>(ctx, {19, 23, 5 * n}, 1, "inline");  // planes of rows
  exchange<T>(ctx, {517, 7 * n}, 1, "thread");     // one long column of rows
  exchange<T>(ctx, {17, 21, 5 * n + 1}, 2, "inline");
  exchange<T>(ctx, {16, 3, 11, 4 * n}, Width({1, 0, 1, 1}, {1, 2, 0, 1}), "inline");
}

}  // namespace

RANK_TEST("both faces of the contiguous dimension take turns, elements of 1 to 16 bytes, widths 1 and 2, thread too") {
  if (ctx.size() == 1 || ctx.size() > 4) return;
  exchange_all<std::int8_t>(ctx);
  exchange_all<std::int16_t>(ctx);
  exchange_all<float>(ctx);
  exchange_all<double>(ctx);
  exchange_all<std::complex<double>>(ctx);
}

RANK_TEST("several fields in one halo, of which each has its own pairs; more lines than a core's caches hold") {
  if (ctx.size() == 1 || ctx.size() > 4) return;
  const std::int64_t n = ctx.size();
  GridOptions options;
  options.split = {1, 1, ctx.size()};
  options.periodic = {true, true, true};
  const Grid grid(ctx, {97, 61, 6 * n + 1}, options);
  const Field<double> a(grid, {.name = "a", .shadow = 1});
  const Field<double> b(grid, {.name = "b", .shadow = 2});
  HaloOptions halo_options;
  halo_options.path = "shared:eager";
  Halo halo(std::vector<HaloField>{HaloField(a), HaloField(b)}, halo_options);
  for (int iteration = 0; iteration < 5; ++iteration) {
    for (const auto* field : {&a, &b}) {
      for_all(*field, [&](const Index& at, double& cell, bool owned) {
        cell = owned ? value<double>(grid, at, iteration) : -1;
      });
    }
    halo.start();
    halo.wait();
    int wrong = 0;
    for (const auto* field : {&a, &b}) {
      for_all(*field, [&](const Index& at, const double& cell, bool) {
        wrong += cell == value<double>(grid, at, iteration) ? 0 : 1;
      });
    }
    CHECK(wrong == 0);
  }
  ctx.barrier();
}
