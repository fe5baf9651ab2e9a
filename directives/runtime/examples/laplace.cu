// Laplace's equation by Jacobi's method on GPUs, written by hand against xacc.h: laplace.c with the arrays on the
// device, kernels in place of OpenACC's loops, and the reflect as work of a queue. The same values, bit by bit.
//   mpirun -n 2 laplace_xacc ROWS COLUMNS STEPS [COLUMNS-OF-NODES]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checksum.h"
#include "norm.cuh"
#include "xacc.h"

namespace {

// Where global indices are in memory.
struct Plane {
  double* at;
  std::int64_t stride;
};

Plane plane_of(const xmp_view& view) {
  return {static_cast<double*>(view.device) - view.base[0] * view.strides[0] - view.base[1], view.strides[0]};
}

struct Area {
  std::int64_t i, rows, j, columns;
};

Area area_of(const xmp_range* r) {
  return {r[0].first, r[0].end - r[0].first, r[1].first, r[1].end - r[1].first};
}

__global__ void copy(Plane u, Plane old, Area a) {
  const std::int64_t j = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (j < a.columns) old.at[(a.i + blockIdx.y) * old.stride + a.j + j] = u.at[(a.i + blockIdx.y) * u.stride + a.j + j];
}

// `changes`: the largest one of each block.
__global__ void step(Plane u, Plane old, Area a, double* changes) {
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  double change = 0;
  if (column < a.columns) {
    const std::int64_t j = a.j + column;
    const double* const row = old.at + (a.i + blockIdx.y) * old.stride;
    const double* const above = row - old.stride;
    const double* const below = row + old.stride;
    const double value = 0.25 * ((above[j] + below[j]) + (row[j - 1] + row[j + 1]));
    change = fabs(value - row[j]);
    u.at[(a.i + blockIdx.y) * u.stride + j] = value;
  }
  step_norm::put(changes, change, step_norm::Largest{});
}

constexpr unsigned kThreads = 128;

dim3 blocks_of(const Area& a) {
  return {static_cast<unsigned>((a.columns + kThreads - 1) / kThreads), static_cast<unsigned>(a.rows)};
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 64;
  const std::int64_t columns = argc > 2 ? std::atoll(argv[2]) : 64;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 100;
  xmp_init(argc, argv);
  xmp_on_error(XMP_RETURN);
  if (xacc_barrier(nullptr) == XMP_NOT_POSSIBLE) {
    if (xmpc_node_num() == 0) std::printf("SKIPPED: %s\n", xmp_last_error());
    return xmp_finalize();
  }
  xmp_on_error(XMP_STOP);
  xmp_desc_t p = nullptr;
  xmp_desc_t t = nullptr;
  xmp_desc_t u = nullptr;
  xmp_desc_t old = nullptr;
  const std::int64_t nodes[] = {0, argc > 4 ? std::atoll(argv[4]) : 1};
  const std::int64_t extents[] = {rows, columns};
  const xmp_range ranges[] = {{0, rows, 1}, {0, columns, 1}};
  const xmp_distribution block[] = {{XMP_BLOCK, 0, nullptr}, {XMP_BLOCK, 0, nullptr}};
  const xmp_width one[] = {{1, 1}, {1, 1}};
  xmp_nodes(&p, 2, nodes);
  xmp_template(&t, 2, ranges);
  xmp_distribute(t, block, p);
  xmp_array_spec spec{};
  spec.name = "u";
  spec.type = XMP_F64;
  spec.ndims = 2;
  spec.extents = extents;
  xmp_array(&u, &spec, t);
  spec.name = "old";
  xmp_array(&old, &spec, t);
  xmp_shadow(old, one);
  xmp_allocate(u, nullptr);
  xacc_allocate(u, nullptr);
  xacc_allocate(old, nullptr);
  xmp_view view_u;
  xmp_view view_old;
  xmp_get_view(u, &view_u);
  xmp_get_view(old, &view_old);

  const xmp_range inner[] = {{1, rows - 1, 1}, {1, columns - 1, 1}};
  xmp_nests all;
  xmp_nests loop;
  xmp_loop_nests(t, nullptr, XMP_EXPAND, nullptr, &all);
  xmp_loop_nests(t, inner, XMP_EXPAND, nullptr, &loop);
  const Area mine = all.count > 0 ? area_of(all.ranges[0]) : Area{};
  const Area computed = loop.count > 0 ? area_of(loop.ranges[0]) : Area{};
  auto* const host = static_cast<double*>(view_u.data);
  for (std::int64_t i = 0; i < mine.rows; ++i)
    for (std::int64_t j = 0; j < mine.columns; ++j) {
      const std::int64_t row = mine.i + i;
      const double slope = static_cast<double>(rows - 1 - row) / static_cast<double>(rows - 1);
      host[i * view_u.strides[0] + j] = row == 0 ? 1 : mine.j + j == 0 ? slope : 0;
    }
  xacc_update_device(u);

  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return EXIT_FAILURE;
  xacc_set_queue(1, stream);
  xmp_reflect_options options{};
  options.orthogonal = 1;
  xacc_reflect_init(1, &old, &options);
  const bool any = mine.rows > 0 && mine.columns > 0;
  const bool some = computed.rows > 0 && computed.columns > 0;
  const dim3 blocks = blocks_of(computed);
  const std::int64_t parts = some ? static_cast<std::int64_t>(blocks.x) * blocks.y : 0;
  double* changes = nullptr;  // of blocks, behind that of all
  if (cudaMalloc(&changes, static_cast<std::size_t>(parts + 1) * sizeof(double)) != cudaSuccess) return EXIT_FAILURE;
  const xmp_variable change_on_gpu{changes, 1, XMP_F64};
  const double began = xmp_wtime();
  for (int n = 0; n < steps; ++n) {
    if (any) copy<<<blocks_of(mine), kThreads, 0, stream>>>(plane_of(view_u), plane_of(view_old), mine);
    xacc_reflect_do(1, &old, 1);
    if (some) step<<<blocks, kThreads, 0, stream>>>(plane_of(view_u), plane_of(view_old), computed, changes + 1);
    step_norm::of_blocks<<<1, 1024, 0, stream>>>(changes + 1, parts, changes, step_norm::Largest{});
    xacc_reduction(XMP_MAX, 1, &change_on_gpu, nullptr, 1);
  }
  xacc_barrier(nullptr);
  const double took = (xmp_wtime() - began) / steps;
  double change = 0;
  if (cudaMemcpy(&change, changes, sizeof(double), cudaMemcpyDeviceToHost) != cudaSuccess) return EXIT_FAILURE;
  cudaFree(changes);
  xacc_update_self(u);

  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < mine.rows; ++i)
    for (std::int64_t j = 0; j < mine.columns; ++j)
      sum += checksum(&host[i * view_u.strides[0] + j], sizeof(double), (mine.i + i) * columns + mine.j + j);
  const xmp_variable v{&sum, 1, XMP_U64};
  xmp_reduction(XMP_SUM, 1, &v, nullptr);
  if (xmpc_node_num() == 0)
    std::printf("%.2f us a step  change %.17g  checksum %016llx\n", took * 1e6, change,
                static_cast<unsigned long long>(sum));
  return xmp_finalize();
}
