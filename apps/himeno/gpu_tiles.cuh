// The 19-point stencil as threads of a GPU compute it, in tiles: for the kernels of gpu_kernel.cu and gpu_resident.cu.
//
// A thread computes V neighbouring cells of a row (four, in one load of 16 bytes an array, where rows are aligned). A
// block is a tile of rows that are close in i and j, so that most of the pressure's rows come from its multiprocessor's
// cache; the coefficients, which are used once, are marked to leave the caches first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/deal.hpp"
#include "common/gpu.cuh"
#include "himeno/kernel.hpp"
#include "tasuki/error.hpp"

namespace himeno {
namespace {

constexpr int kThreads = 256;
constexpr int kLogThreads = 8;
constexpr int kMostBoxes = 7;

// A region cut into tiles of 2^log[0] x 2^log[1] rows and 2^log[2] groups of V cells, one tile a block.
struct Tiles {
  std::int64_t origin;        // of the first group, which begins at a multiple of V and so may begin before lo
  std::uint32_t first_block;  // of this region's blocks
  std::uint32_t cells[3];     // rows in i and in j, groups in k
  std::uint32_t tiles[3];
  std::int32_t log[3];
  std::int32_t lo;  // first and last + 1 cell to compute in k, relative to the origin
  std::int32_t hi;
};

struct Launch {
  const float* coefficients[kArrays.size()];
  double* sums;  // one a block
  std::int64_t stride_i;
  std::int64_t stride_j;
  std::int32_t boxes;
  Tiles box[kMostBoxes];
};

template <int V>
struct Group {
  float at[V];
};

// The cells of a row from one before the group to one after it.
template <int V>
struct Row {
  float at[V + 2];
};

// Not by __ldg: the kernel is launched while the halo is still being written.
template <int V>
__device__ Group<V> load(const float* p) {
  if constexpr (V == 4) {
    const float4 v = __ldca(reinterpret_cast<const float4*>(p));
    return {v.x, v.y, v.z, v.w};
  } else {
    return {__ldca(p)};
  }
}

template <int V>
__device__ Group<V> load_once(const float* p) {
  if constexpr (V == 4) {
    const float4 v = __ldcs(reinterpret_cast<const float4*>(p));
    return {v.x, v.y, v.z, v.w};
  } else {
    return {__ldcs(p)};
  }
}

template <int V>
__device__ Row<V> load_row(const float* p) {
  const Group<V> middle = load<V>(p);
  Row<V> row;
  row.at[0] = __ldca(p - 1);
#pragma unroll
  for (int c = 0; c < V; ++c) row.at[c + 1] = middle.at[c];
  row.at[V + 1] = __ldca(p + V);
  return row;
}

// Where a thread is in a tile: at the group with offset n, of which the cells [lo, hi) are wanted, or at none.
struct Place {
  bool is = false;
  std::int64_t n = 0;
  int lo = 0;
  int hi = 0;
};

// A group's coefficients, from their arrays.
template <int V>
struct FromArrays {
  const Launch& l;
  __device__ Group<V> operator()(int array, std::int64_t n) const { return load_once<V>(l.coefficients[array] + n); }
};

// Returns the sum of the squared residuals of the group's cells.
template <int V, class Coefficient>
__device__ double sweep_group(const Launch& l, const float* p, float* next_p, const Place& place,
                              const Coefficient& coefficient) {
  const std::int64_t n = place.n;
  const int lo = place.lo;
  const int hi = place.hi;
  const std::int64_t si = l.stride_i;
  const std::int64_t sj = l.stride_j;
  const float* z = p + n;
  Group<V> k[kArrays.size()];  // a0 a1 a2 a3 b0 b1 b2 c0 c1 c2 bnd wrk1
#pragma unroll
  for (int a = 0; a < static_cast<int>(kArrays.size()); ++a) k[a] = coefficient(a, n);
  // Names say the step in i, then in j, as in kernel.cpp.
  const Row<V> z0 = load_row<V>(z);
  const Row<V> zm = load_row<V>(z - sj);
  const Row<V> zp = load_row<V>(z + sj);
  const Row<V> m0 = load_row<V>(z - si);
  const Row<V> p0 = load_row<V>(z + si);
  const Group<V> mm = load<V>(z - si - sj);
  const Group<V> mp = load<V>(z - si + sj);
  const Group<V> pm = load<V>(z + si - sj);
  const Group<V> pp = load<V>(z + si + sj);
  float next[V];
  double gosa = 0;
#pragma unroll
  for (int c = 0; c < V; ++c) {
    const int at = c + 1;
    const float cross_ij = pp.at[c] - pm.at[c] - mp.at[c] + mm.at[c];
    const float cross_jk = zp.at[at + 1] - zm.at[at + 1] - zp.at[at - 1] + zm.at[at - 1];
    const float cross_ik = p0.at[at + 1] - m0.at[at + 1] - p0.at[at - 1] + m0.at[at - 1];
    const float sum = k[0].at[c] * p0.at[at] + k[1].at[c] * zp.at[at] + k[2].at[c] * z0.at[at + 1] +
                      k[4].at[c] * cross_ij + k[5].at[c] * cross_jk + k[6].at[c] * cross_ik + k[7].at[c] * m0.at[at] +
                      k[8].at[c] * zm.at[at] + k[9].at[c] * z0.at[at - 1] + k[11].at[c];
    const float residual = (sum * k[3].at[c] - z0.at[at]) * k[10].at[c];
    next[c] = z0.at[at] + kOmega * residual;
    if (c >= lo && c < hi) gosa += static_cast<double>(residual * residual);
  }
  float* to = next_p + n;
  if constexpr (V == 4) {
    if (lo <= 0 && hi >= V) {
      *reinterpret_cast<float4*>(to) = make_float4(next[0], next[1], next[2], next[3]);
      return gosa;
    }
  }
#pragma unroll
  for (int c = 0; c < V; ++c) {
    if (c >= lo && c < hi) to[c] = next[c];
  }
  return gosa;
}

// The thread's place in the tile with this number among those of all boxes.
template <int V>
__device__ Place place_in(const Launch& l, std::uint32_t number) {
  int b = 0;
  while (b + 1 < l.boxes && number >= l.box[b + 1].first_block) ++b;
  const Tiles& box = l.box[b];
  const std::uint32_t tile = number - box.first_block;
  const std::uint32_t tile_ij = tile / box.tiles[2];
  const std::uint32_t tile_k = tile - tile_ij * box.tiles[2];
  const std::uint32_t tile_i = tile_ij / box.tiles[1];
  const std::uint32_t tile_j = tile_ij - tile_i * box.tiles[1];
  const std::uint32_t in_k = threadIdx.x & ((1u << box.log[2]) - 1);
  const std::uint32_t in_j = (threadIdx.x >> box.log[2]) & ((1u << box.log[1]) - 1);
  const std::uint32_t in_i = threadIdx.x >> (box.log[2] + box.log[1]);
  const std::uint32_t i = (tile_i << box.log[0]) + in_i;
  const std::uint32_t j = (tile_j << box.log[1]) + in_j;
  const std::uint32_t group = (tile_k << box.log[2]) + in_k;
  if (i >= box.cells[0] || j >= box.cells[1] || group >= box.cells[2]) return {};
  const int k = static_cast<int>(group) * V;
  return {true, box.origin + i * l.stride_i + j * l.stride_j + k, box.lo - k, box.hi - k};
}

// Reads the pressure `p` and writes `next`. Returns the sum of the squared residuals of this thread's cells.
template <int V>
__device__ double sweep_tile(const Launch& l, const float* p, float* next, std::uint32_t number) {
  const Place place = place_in<V>(l, number);
  return place.is ? sweep_group<V>(l, p, next, place, FromArrays<V>{l}) : 0;
}

// By all threads of a block: puts the sum of what they have into the block's place.
__device__ inline void keep_sum(const Launch& l, double gosa) {
  apps::keep_of_block<kThreads>(gosa, l.sums, [](double a, double b) { return a + b; });
}

inline int ceil_log(std::uint32_t n) {
  int log = 0;
  while ((1u << log) < n) ++log;
  return log;
}

// Lanes along k as far as there are groups; then two rows in i, the rest in j, as far as there are rows.
inline Tiles tiles_of(const Region& r, int v) {
  Tiles t{};
  const std::int64_t begin = r.lo[2] / v * v;
  t.origin = r.lo[0] * r.stride_i + r.lo[1] * r.stride_j + begin;
  t.lo = static_cast<std::int32_t>(r.lo[2] - begin);
  t.hi = static_cast<std::int32_t>(r.hi[2] - begin);
  t.cells[0] = static_cast<std::uint32_t>(r.hi[0] - r.lo[0]);
  t.cells[1] = static_cast<std::uint32_t>(r.hi[1] - r.lo[1]);
  t.cells[2] = static_cast<std::uint32_t>((r.hi[2] - begin + v - 1) / v);
  t.log[2] = std::min(5, ceil_log(t.cells[2]));
  const int rows = kLogThreads - t.log[2];
  t.log[1] = std::min(rows - std::min(1, ceil_log(t.cells[0])), ceil_log(t.cells[1]));
  t.log[0] = rows - t.log[1];
  for (int d = 0; d < 3; ++d) t.tiles[d] = (t.cells[d] + (1u << t.log[d]) - 1) >> t.log[d];
  return t;
}

// The launch for some regions of one layout; empty ones are left out. `tiles`: how many there are. Without coefficients
// and sums.
struct Cut {
  std::vector<Region> regions;
  Launch launch{};
  std::int64_t tiles = 0;
  bool aligned = false;  // rows begin at multiples of 16 bytes
};
inline Cut cut(const std::vector<Region>& regions) {
  Cut all{apps::without_empty(regions, kMostBoxes)};
  Launch& l = all.launch;
  for (const Region& region : all.regions) {
    all.aligned = region.stride_i % 4 == 0 && region.stride_j % 4 == 0;
    l.stride_i = region.stride_i;
    l.stride_j = region.stride_j;
    Tiles& tiles = l.box[l.boxes++];
    tiles = tiles_of(region, all.aligned ? 4 : 1);
    tiles.first_block = static_cast<std::uint32_t>(all.tiles);
    all.tiles += std::int64_t{tiles.tiles[0]} * tiles.tiles[1] * tiles.tiles[2];
    if (all.tiles > 2147483647) throw tasuki::Error("a sweep of regions that are too large for one launch");
  }
  return all;
}

// The cells of each tile, all tiles being alike in work.
inline apps::Tiling tiling_of(const Cut& cut, std::int64_t sides) {
  apps::Tiling tiling;
  tiling.sides = static_cast<std::uint32_t>(sides);
  tiling.work.assign(static_cast<std::size_t>(cut.tiles), 1);
  const int v = cut.aligned ? 4 : 1;
  for (std::size_t r = 0; r < cut.regions.size(); ++r) {
    const Region& region = cut.regions[r];
    const Tiles& t = cut.launch.box[r];
    const std::int64_t units[3] = {1, 1, v};
    const std::int64_t from[3] = {region.lo[0], region.lo[1], region.lo[2] / v * v};
    for (std::uint32_t n = 0; n < t.tiles[0] * t.tiles[1] * t.tiles[2]; ++n) {
      const std::uint32_t at[3] = {n / t.tiles[2] / t.tiles[1], n / t.tiles[2] % t.tiles[1], n % t.tiles[2]};
      tasuki::Box cells;
      cells.ndims = 3;
      for (int d = 0; d < 3; ++d) {
        const std::int64_t extent = units[d] << t.log[d];
        cells.lo[d] = std::max(region.lo[d], from[d] + at[d] * extent);
        cells.hi[d] = std::min(region.hi[d], from[d] + (at[d] + 1) * extent);
      }
      tiling.pieces.push_back({t.first_block + n, cells});
    }
  }
  return tiling;
}

inline void set_coefficients(Launch& l, const Coefficients& coefficients) {
  int n = 0;
  for (const float* a : coefficients.a) l.coefficients[n++] = a;
  for (const float* b : coefficients.b) l.coefficients[n++] = b;
  for (const float* c : coefficients.c) l.coefficients[n++] = c;
  l.coefficients[n++] = coefficients.bnd;
  l.coefficients[n++] = coefficients.wrk1;
}

}  // namespace
}  // namespace himeno
