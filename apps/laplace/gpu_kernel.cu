// The 5-point stencil on a GPU. A thread computes V neighbouring cells (two, in one load of 16 bytes, where rows are
// aligned) in kRows rows, whose loads are all in flight at once.
#include "laplace/gpu_kernel.hpp"

#include <algorithm>
#include <string>

#include "laplace/serial.hpp"
#include "tasuki/cuda.cuh"

namespace laplace {
namespace {

constexpr int kThreads = 256;
constexpr int kMostBoxes = 4;
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
  const double* u;
  double* next;
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
__device__ double sweep_group(const Launch& l, std::int64_t n, int rows, int lo, int hi) {
  Group<V> row[kRows + 2];
  double left[kRows];
  double right[kRows];
#pragma unroll
  for (int r = 0; r < kRows + 2; ++r) {
    const double* p = l.u + n + (r - 1) * l.stride;
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
    double* to = l.next + n + r * l.stride;
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

template <int V>
__global__ void __launch_bounds__(kThreads) sweep_boxes(const __grid_constant__ Launch l) {
  tasuki::wait_for_stream();
  tasuki::let_next_begin();  // the exchange may prepare itself meanwhile
  int b = 0;
  while (b + 1 < l.boxes && blockIdx.x >= l.box[b + 1].first_block) ++b;
  const Groups& box = l.box[b];
  const std::uint32_t group = (blockIdx.x - box.first_block) * kThreads + threadIdx.x;
  const std::uint32_t down = group / box.across;
  double change = 0;
  if (down < box.down) {
    const int j = static_cast<int>(group - down * box.across) * V;
    const int i = static_cast<int>(down) * kRows;
    change = sweep_group<V>(l, box.origin + i * l.stride + j, min(kRows, box.rows - i), box.lo - j, box.hi - j);
  }
  __shared__ double of_warp[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) change = fmax(change, __shfl_xor_sync(~0u, change, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = change;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) change = fmax(change, of_warp[warp]);
  l.changes[blockIdx.x] = change;
}

// A block for each row.
__global__ void fill_rows(Region region, std::int64_t row, std::int64_t column, std::int64_t rows, double* now,
                          double* next) {
  const std::int64_t i = region.lo[0] + blockIdx.x;
  for (std::int64_t j = region.lo[1] + threadIdx.x; j < region.hi[1]; j += blockDim.x) {
    const double value = initial_value(row + blockIdx.x, column + j - region.lo[1], rows);
    now[i * region.stride + j] = value;
    next[i * region.stride + j] = value;
  }
}

bool is_empty(const Region& r) {
  return r.lo[0] >= r.hi[0] || r.lo[1] >= r.hi[1];
}

Groups groups_of(const Region& r, int v) {
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

}  // namespace

struct GpuSweep::Parts {
  Launch launch{};
  std::int64_t blocks = 0;
  bool aligned = false;  // rows begin at multiples of 16 bytes
  ~Parts() { cudaFree(launch.changes); }
};

GpuSweep::GpuSweep(const std::vector<Region>& regions) {
  auto parts = std::make_shared<Parts>();
  Launch& l = parts->launch;
  for (const Region& region : regions) {
    if (is_empty(region)) continue;
    if (l.boxes == kMostBoxes) {
      throw tasuki::Error("GpuSweep: more than " + std::to_string(kMostBoxes) + " regions; use two sweeps");
    }
    parts->aligned = region.stride % 2 == 0;
    l.stride = region.stride;
    Groups& groups = l.box[l.boxes++];
    groups = groups_of(region, parts->aligned ? 2 : 1);
    groups.first_block = static_cast<std::uint32_t>(parts->blocks);
    parts->blocks += (std::int64_t{groups.across} * groups.down + kThreads - 1) / kThreads;
    // Groups are numbered in 32 bits.
    if (parts->blocks > 2147483647 / kThreads)
      throw tasuki::Error("GpuSweep: the regions are too large for one launch");
  }
  if (l.boxes > 0) {
    TASUKI_CUDA(cudaMalloc, reinterpret_cast<void**>(&l.changes), parts->blocks * sizeof(double));
    TASUKI_CUDA(cudaMemset, l.changes, 0, parts->blocks * sizeof(double));
    // Loads the kernels: that must not happen in a capture, nor while another waits for a neighbour.
    cudaFuncAttributes attributes{};
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<2>);
    TASUKI_CUDA(cudaFuncGetAttributes, &attributes, sweep_boxes<1>);
  }
  parts_ = parts;
}

void GpuSweep::enqueue(const double* u, double* next, tasuki::Stream stream) const {
  if (parts_->launch.boxes == 0) return;
  Launch l = parts_->launch;
  l.u = u;
  l.next = next;
  const auto blocks = static_cast<unsigned>(parts_->blocks);
  if (parts_->aligned) {
    tasuki::launch_early("launching a sweep", stream, blocks, kThreads, sweep_boxes<2>, l);
  } else {
    tasuki::launch_early("launching a sweep", stream, blocks, kThreads, sweep_boxes<1>, l);
  }
}

double GpuSweep::change() const {
  std::vector<double> changes(static_cast<std::size_t>(parts_->blocks));
  if (changes.empty()) return 0;
  TASUKI_CUDA(cudaMemcpy, changes.data(), parts_->launch.changes, changes.size() * sizeof(double),
              cudaMemcpyDeviceToHost);
  return *std::max_element(changes.begin(), changes.end());
}

void fill_initial(const Region& region, std::int64_t row, std::int64_t column, std::int64_t rows, double* now,
                  double* next, tasuki::Stream stream) {
  if (is_empty(region)) return;
  fill_rows<<<static_cast<unsigned>(region.hi[0] - region.lo[0]), 256, 0, stream>>>(region, row, column, rows, now,
                                                                                    next);
  TASUKI_CUDA(cudaGetLastError);
}

}  // namespace laplace
