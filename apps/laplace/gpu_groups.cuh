// The 5-point stencil as threads of a GPU compute it: for the kernels of gpu_kernel.cu and gpu_resident.cu. A thread
// computes V neighbouring cells (two, in one load of 16 bytes, where rows are aligned) in kRows rows, whose loads are
// all in flight at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/deal.hpp"
#include "common/gpu.cuh"
#include "laplace/kernel.hpp"
#include "tasuki/error.hpp"

namespace laplace {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBoxes = 5;
constexpr int kRows = 4;

// A region cut into groups of V cells in kRows rows, a group a thread.
struct Groups {
  std::int64_t origin;        // of the first group, which begins at a multiple of V and so may begin before lo
  std::uint32_t first_block;  // of this region's blocks
  std::uint32_t across;       // groups in a row
  std::uint32_t down;         // in a column
  std::int32_t rows;
  std::int32_t lo;  // first and last + 1 cell to compute in a row, relative to the origin
  std::int32_t hi;
};

struct Launch {
  double* changes;  // one a block
  std::int64_t stride;
  std::int32_t boxes;
  Groups box[kMostBoxes];
};

template <int V>
struct Group {
  double at[V];
};

// Not by __ldg: the kernel is launched while the halo is still being written.
template <int V>
__device__ Group<V> load(const double* p) {
  if constexpr (V == 2) {
    const double2 v = __ldca(reinterpret_cast<const double2*>(p));
    return {v.x, v.y};
  } else {
    return {__ldca(p)};
  }
}

// The group at offset n and in `rows` rows from there, of which the cells [lo, hi) of each row are wanted.
template <int V>
__device__ double sweep_group(const Launch& l, const double* u, double* next_u, std::int64_t n, int rows, int lo,
                              int hi) {
  Group<V> row[kRows + 2];
  double left[kRows];
  double right[kRows];
#pragma unroll
  for (int r = 0; r < kRows + 2; ++r) {
    const double* p = u + n + (r - 1) * l.stride;
    if (r > rows + 1) continue;
    row[r] = load<V>(p);
    if (r == 0 || r > rows) continue;  // only a row that is computed needs its cells beside the group
    left[r - 1] = __ldca(p - 1);
    right[r - 1] = __ldca(p + V);
  }
  double change = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows) continue;
    Group<V> next;
#pragma unroll
    for (int c = 0; c < V; ++c) {
      const double before = c == 0 ? left[r] : row[r + 1].at[c - 1];
      const double after = c == V - 1 ? right[r] : row[r + 1].at[c + 1];
      next.at[c] = 0.25 * ((row[r].at[c] + row[r + 2].at[c]) + (before + after));
      if (c >= lo && c < hi) change = fmax(change, fabs(next.at[c] - row[r + 1].at[c]));
    }
    double* to = next_u + n + r * l.stride;
    if constexpr (V == 2) {
      if (lo <= 0 && hi >= V) {
        *reinterpret_cast<double2*>(to) = make_double2(next.at[0], next.at[1]);
        continue;
      }
    }
#pragma unroll
    for (int c = 0; c < V; ++c) {
      if (c >= lo && c < hi) to[c] = next.at[c];
    }
  }
  return change;
}

// Reads `u` and writes `next` in this thread's cells of the block with this number among those of all boxes. Returns
// their largest change.
template <int V>
__device__ double sweep_block(const Launch& l, const double* u, double* next, std::uint32_t number) {
  int b = 0;
  while (b + 1 < l.boxes && number >= l.box[b + 1].first_block) ++b;
  const Groups& box = l.box[b];
  const std::uint32_t group = (number - box.first_block) * kThreads + threadIdx.x;
  const std::uint32_t down = group / box.across;
  if (down >= box.down) return 0;
  const int j = static_cast<int>(group - down * box.across) * V;
  const int i = static_cast<int>(down) * kRows;
  return sweep_group<V>(l, u, next, box.origin + i * l.stride + j, min(kRows, box.rows - i), box.lo - j, box.hi - j);
}

// By all threads of a block: puts the largest of their changes into the block's place.
__device__ inline void keep_largest(const Launch& l, double change) {
  apps::keep_of_block<kThreads>(change, l.changes, [](double a, double b) { return fmax(a, b); });
}

inline Groups groups_of(const Region& r, int v) {
  const std::int64_t begin = r.lo[1] / v * v;
  Groups g{};
  g.origin = r.lo[0] * r.stride + begin;
  g.across = static_cast<std::uint32_t>((r.hi[1] - begin + v - 1) / v);
  g.rows = static_cast<std::int32_t>(r.hi[0] - r.lo[0]);
  g.down = static_cast<std::uint32_t>((g.rows + kRows - 1) / kRows);
  g.lo = static_cast<std::int32_t>(r.lo[1] - begin);
  g.hi = static_cast<std::int32_t>(r.hi[1] - begin);
  return g;
}

// The launch for some regions of one layout; empty ones are left out. `blocks`: how many there are. Without `changes`.
struct Cut {
  std::vector<Region> regions;
  Launch launch{};
  std::int64_t blocks = 0;
  bool aligned = false;  // rows begin at multiples of 16 bytes
};
inline Cut cut(const std::vector<Region>& regions) {
  Cut all{apps::without_empty(regions, kMostBoxes)};
  Launch& l = all.launch;
  for (const Region& region : all.regions) {
    all.aligned = region.stride % 2 == 0;
    l.stride = region.stride;
    Groups& groups = l.box[l.boxes++];
    groups = groups_of(region, all.aligned ? 2 : 1);
    groups.first_block = static_cast<std::uint32_t>(all.blocks);
    all.blocks += (std::int64_t{groups.across} * groups.down + kThreads - 1) / kThreads;
    // Groups are numbered in 32 bits.
    if (all.blocks > 2147483647 / kThreads) throw tasuki::Error("a sweep of regions that are too large for one launch");
  }
  return all;
}

// The cells of each block of a launch, all being alike in work: a part of a row of groups after the other.
inline apps::Tiling tiling_of(const Cut& cut, std::int64_t sides) {
  apps::Tiling tiling;
  tiling.sides = static_cast<std::uint32_t>(sides);
  tiling.work.assign(static_cast<std::size_t>(cut.blocks), 1);
  const std::int64_t v = cut.aligned ? 2 : 1;
  for (std::size_t r = 0; r < cut.regions.size(); ++r) {
    const Region& region = cut.regions[r];
    const Groups& g = cut.launch.box[r];
    const std::int64_t end = std::int64_t{g.across} * g.down;
    for (std::int64_t group = 0; group < end;) {
      const std::int64_t down = group / g.across;
      const std::int64_t next = std::min({(group / kThreads + 1) * kThreads, (down + 1) * g.across, end});
      const std::int64_t begin = region.lo[1] / v * v - down * g.across * v;  // of the row's first group, at group 0
      tasuki::Box cells;
      cells.ndims = 2;
      cells.lo[0] = region.lo[0] + down * kRows;
      cells.hi[0] = std::min(region.hi[0], cells.lo[0] + kRows);
      cells.lo[1] = std::max(region.lo[1], begin + group * v);
      cells.hi[1] = std::min(region.hi[1], begin + next * v);
      tiling.pieces.push_back({g.first_block + static_cast<std::uint32_t>(group / kThreads), cells});
      group = next;
    }
  }
  return tiling;
}

}  // namespace
}  // namespace laplace
