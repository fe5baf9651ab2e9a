// The Himeno benchmark on GPUs, written by hand against xacc.h: himeno.c with the arrays on the device, kernels in
// place of OpenACC's loops, the reflect and the sum of residuals in every step as work of a queue. The same pressures,
// bit by bit.
//   mpirun -n 2 himeno_xacc I J K STEPS [NJ NK]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checksum.h"
#include "norm.cuh"
#include "xacc.h"

namespace {

enum { A = 0, B = 4, C = 7, MASK = 10, SOURCE = 11, COEFFICIENTS = 12 };
constexpr float kValues[COEFFICIENTS] = {1, 1, 1, 1.0F / 6, 0, 0, 0, 1, 1, 1, 1, 0};

// Where global indices are in memory; `n`: the coefficients' first stride.
struct Space {
  float* at;
  std::int64_t i, j, n;
};

Space space_of(xmp_desc_t array, void* data, int first) {
  xmp_view view;
  xmp_get_view(array, &view);
  const std::int64_t i = view.strides[first];
  const std::int64_t j = view.strides[first + 1];
  float* const at = static_cast<float*>(data) - view.base[first] * i - view.base[first + 1] * j - view.base[first + 2];
  return {at, i, j, first > 0 ? view.strides[0] : 0};
}

void* device_of(xmp_desc_t array) {
  xmp_view view;
  xmp_get_view(array, &view);
  return view.device;
}

struct Area {
  std::int64_t first[3], extent[3];
};

Area area_of(const xmp_nests& nests) {
  Area area{};
  for (int d = 0; d < 3 && nests.count > 0; ++d) {
    area.first[d] = nests.ranges[0][d].first;
    area.extent[d] = nests.ranges[0][d].end - nests.ranges[0][d].first;
  }
  return area;
}

__device__ bool cell_of(const Area& area, std::int64_t& i, std::int64_t& j, std::int64_t& k) {
  k = area.first[2] + blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  j = area.first[1] + blockIdx.y;
  i = area.first[0] + blockIdx.z;
  return k < area.first[2] + area.extent[2];
}

// The square of the cell's residual.
__device__ double sweep_cell(const Space& p, const Space& next, const Space& c, std::int64_t i, std::int64_t j,
                             std::int64_t k) {
  const float* const z = p.at + i * p.i + j * p.j + k;
  const std::int64_t si = p.i;
  const std::int64_t sj = p.j;
  const float* const at = c.at + i * c.i + j * c.j + k;
  const auto v = [&](int m) { return at[m * c.n]; };
  const float cross_ij = z[si + sj] - z[si - sj] - z[sj - si] + z[-si - sj];
  const float cross_jk = z[sj + 1] - z[1 - sj] - z[sj - 1] + z[-sj - 1];
  const float cross_ik = z[si + 1] - z[1 - si] - z[si - 1] + z[-si - 1];
  const float sum = v(A) * z[si] + v(A + 1) * z[sj] + v(A + 2) * z[1] + v(B) * cross_ij + v(B + 1) * cross_jk +
                    v(B + 2) * cross_ik + v(C) * z[-si] + v(C + 1) * z[-sj] + v(C + 2) * z[-1] + v(SOURCE);
  const float residual = (sum * v(A + 3) - z[0]) * v(MASK);
  next.at[i * next.i + j * next.j + k] = z[0] + 0.8F * residual;
  return static_cast<double>(residual * residual);
}

// `gosas`: the sum of each block.
__global__ void sweep(Space p, Space next, Space c, Area area, double* gosas) {
  std::int64_t i = 0;
  std::int64_t j = 0;
  std::int64_t k = 0;
  step_norm::put(gosas, cell_of(area, i, j, k) ? sweep_cell(p, next, c, i, j, k) : 0, step_norm::Sum{});
}

__global__ void copy(Space p, Space next, Area area) {
  std::int64_t i = 0;
  std::int64_t j = 0;
  std::int64_t k = 0;
  if (cell_of(area, i, j, k)) p.at[i * p.i + j * p.j + k] = next.at[i * next.i + j * next.j + k];
}

dim3 blocks_of(const Area& area, unsigned threads) {
  return {static_cast<unsigned>((area.extent[2] + threads - 1) / threads), static_cast<unsigned>(area.extent[1]),
          static_cast<unsigned>(area.extent[0])};
}

template <class Use>
void each_cell(const Area& area, Use&& use) {
  for (std::int64_t i = area.first[0]; i < area.first[0] + area.extent[0]; ++i)
    for (std::int64_t j = area.first[1]; j < area.first[1] + area.extent[1]; ++j)
      for (std::int64_t k = area.first[2]; k < area.first[2] + area.extent[2]; ++k) use(i, j, k);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t n[3] = {33, 34, 65};
  for (int d = 0; d < 3 && argc > d + 1; ++d) n[d] = std::atoll(argv[d + 1]);
  const int steps = argc > 4 ? std::atoi(argv[4]) : 3;
  xmp_init(argc, argv);
  xmp_on_error(XMP_RETURN);
  if (xacc_barrier(nullptr) == XMP_NOT_POSSIBLE) {
    if (xmpc_node_num() == 0) std::printf("SKIPPED: %s\n", xmp_last_error());
    return xmp_finalize();
  }
  xmp_on_error(XMP_STOP);
  const std::int64_t node_extents[] = {0, argc > 5 ? std::atoll(argv[5]) : 1, argc > 6 ? std::atoll(argv[6]) : 1};
  const xmp_range ranges[] = {{0, n[0], 1}, {0, n[1], 1}, {0, n[2], 1}};
  const xmp_distribution block[] = {{XMP_BLOCK, 0, nullptr}, {XMP_BLOCK, 0, nullptr}, {XMP_BLOCK, 0, nullptr}};
  xmp_desc_t nodes = nullptr;
  xmp_desc_t t = nullptr;
  xmp_desc_t p = nullptr;
  xmp_desc_t work = nullptr;
  xmp_desc_t coefficients = nullptr;
  xmp_nodes(&nodes, 3, node_extents);
  xmp_template(&t, 3, ranges);
  xmp_distribute(t, block, nodes);
  xmp_array_spec spec{};
  spec.name = "p";
  spec.type = XMP_F32;
  spec.ndims = 3;
  spec.extents = n;
  xmp_array(&p, &spec, t);
  const xmp_width shadow[] = {{1, 2}, {1, 2}, {1, 1}};
  xmp_shadow(p, shadow);
  spec.name = "work";
  xmp_array(&work, &spec, t);
  const std::int64_t extents[] = {COEFFICIENTS, n[0], n[1], n[2]};
  const int axis[] = {XMP_COLLAPSED, 0, 1, 2};
  spec.name = "coefficients";
  spec.ndims = 4;
  spec.extents = extents;
  spec.axis = axis;
  xmp_array(&coefficients, &spec, t);
  void* on_host[2] = {};
  xmp_allocate(p, &on_host[0]);
  xmp_allocate(coefficients, &on_host[1]);
  for (const xmp_desc_t one : {p, work, coefficients}) xacc_allocate(one, nullptr);

  const xmp_range inner[] = {{1, n[0] - 1, 1}, {1, n[1] - 1, 1}, {1, n[2] - 1, 1}};
  xmp_nests nests;
  xmp_loop_nests(t, nullptr, XMP_EXPAND, nullptr, &nests);
  const Area mine = area_of(nests);
  xmp_loop_nests(t, inner, XMP_EXPAND, nullptr, &nests);
  const Area computed = area_of(nests);
  const Space host_p = space_of(p, on_host[0], 0);
  const Space host_c = space_of(coefficients, on_host[1], 1);
  each_cell(mine, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    host_p.at[i * host_p.i + j * host_p.j + k] =
        static_cast<float>(i * i) / static_cast<float>((n[0] - 1) * (n[0] - 1));
    for (int m = 0; m < COEFFICIENTS; ++m) host_c.at[m * host_c.n + i * host_c.i + j * host_c.j + k] = kValues[m];
  });
  xacc_update_device(p);
  xacc_update_device(coefficients);

  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return EXIT_FAILURE;
  xacc_set_queue(1, stream);
  const xmp_width one[] = {{1, 1}, {1, 1}, {1, 1}};
  xmp_reflect_options options{};
  options.width = one;
  xacc_reflect_init(1, &p, &options);
  const Space device_p = space_of(p, device_of(p), 0);
  const Space device_next = space_of(work, device_of(work), 0);
  const Space device_c = space_of(coefficients, device_of(coefficients), 1);
  constexpr unsigned kThreads = 128;
  const bool any = computed.extent[0] > 0 && computed.extent[1] > 0 && computed.extent[2] > 0;
  const dim3 blocks = blocks_of(computed, kThreads);
  const std::int64_t parts = any ? static_cast<std::int64_t>(blocks.x) * blocks.y * blocks.z : 0;
  double* gosas = nullptr;  // of blocks, behind that of all
  if (cudaMalloc(&gosas, static_cast<std::size_t>(parts + 1) * sizeof(double)) != cudaSuccess) return EXIT_FAILURE;
  const xmp_variable gosa_on_gpu{gosas, 1, XMP_F64};
  const double began = xmp_wtime();
  for (int step = 0; step < steps; ++step) {
    xacc_reflect_do(1, &p, 1);
    if (any) {
      sweep<<<blocks, kThreads, 0, stream>>>(device_p, device_next, device_c, computed, gosas + 1);
      copy<<<blocks, kThreads, 0, stream>>>(device_p, device_next, computed);
    }
    step_norm::of_blocks<<<1, 1024, 0, stream>>>(gosas + 1, parts, gosas, step_norm::Sum{});
    xacc_reduction(XMP_SUM, 1, &gosa_on_gpu, nullptr, 1);
  }
  xacc_barrier(nullptr);
  const double took = (xmp_wtime() - began) / steps;
  double gosa = 0;
  if (cudaMemcpy(&gosa, gosas, sizeof(double), cudaMemcpyDeviceToHost) != cudaSuccess) return EXIT_FAILURE;
  cudaFree(gosas);
  xacc_update_self(p);

  std::uint64_t sum = 0;
  each_cell(mine, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    sum += checksum(&host_p.at[i * host_p.i + j * host_p.j + k], sizeof(float), (i * n[1] + j) * n[2] + k);
  });
  const xmp_variable v{&sum, 1, XMP_U64};
  xmp_reduction(XMP_SUM, 1, &v, nullptr);
  if (xmpc_node_num() == 0)
    std::printf("%.2f us a step  gosa %.6e  checksum %016llx\n", took * 1e6, gosa,
                static_cast<unsigned long long>(sum));
  return xmp_finalize();
}
