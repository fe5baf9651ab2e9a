// Laplace's equation by Jacobi's method on GPUs, written by hand against xacc.h: laplace.c with the arrays on the
// device, kernels in place of OpenACC's loops, and the reflect as work of a queue. The same values, bit by bit.
//   mpirun -n 2 laplace_xacc ROWS COLUMNS STEPS [COLUMNS-OF-NODES]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checksum.h"
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

__global__ void step(Plane u, Plane old, Area a) {
  const std::int64_t column = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (column >= a.columns) return;
  const std::int64_t j = a.j + column;
  const double* const row = old.at + (a.i + blockIdx.y) * old.stride;
  const double* const above = row - old.stride;
  const double* const below = row + old.stride;
  u.at[(a.i + blockIdx.y) * u.stride + j] = 0.25 * ((above[j] + below[j]) + (row[j - 1] + row[j + 1]));
}

template <class Kernel>
void launch(Kernel kernel, Plane u, Plane old, const Area& a, cudaStream_t stream) {
  constexpr unsigned kThreads = 128;
  if (a.rows <= 0 || a.columns <= 0) return;
  const dim3 blocks(static_cast<unsigned>((a.columns + kThreads - 1) / kThreads), static_cast<unsigned>(a.rows));
  kernel<<<blocks, kThreads, 0, stream>>>(u, old, a);
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
  for (int n = 0; n < steps; ++n) {
    launch(copy, plane_of(view_u), plane_of(view_old), mine, stream);
    xacc_reflect_do(1, &old, 1);
    launch(step, plane_of(view_u), plane_of(view_old), computed, stream);
  }
  xacc_barrier(nullptr);
  xacc_update_self(u);

  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < mine.rows; ++i)
    for (std::int64_t j = 0; j < mine.columns; ++j)
      sum += checksum(&host[i * view_u.strides[0] + j], sizeof(double), (mine.i + i) * columns + mine.j + j);
  const xmp_variable v{&sum, 1, XMP_U64};
  xmp_reduction(XMP_SUM, 1, &v, nullptr);
  if (xmpc_node_num() == 0) std::printf("checksum %016llx\n", static_cast<unsigned long long>(sum));
  return xmp_finalize();
}
