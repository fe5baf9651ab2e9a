// The Himeno benchmark in MPI and CUDA: what himeno_xacc_square.c is without directives. The first dimension is split
// over the ranks, each of which has at least one plane; the pressures are the same, bit by bit. MPI must take memory of
// the GPU.
//   nvcc -ccbin mpicxx -arch=sm_90 -O2 --fmad=false -I directives/runtime/examples himeno_mpi.cu
#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checksum.h"

#ifndef I
#define I 33
#define J 34
#define K 65
#define STEPS 3
#endif

namespace {

// The coefficients of one i are together, so that all arrays are split alike.
using Plane = float[J][K];
struct Arrays {
  Plane *p, *work, *bound, *source;
  Plane (*a)[4], (*b)[3], (*c)[3];
};
constexpr int kThreads = 128;
constexpr int kMostThreads = 1024;

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(result));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

// One GPU for each rank of a host.
void choose_device() {
  MPI_Comm host;
  int rank = 0;
  int devices = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_free(&host);
  check(cudaGetDeviceCount(&devices));
  check(cudaSetDevice(rank % devices));
}

// The cell of the thread, which is in the plane `at` of the whole.
struct Cell {
  int i, j, k, at;
};

__device__ Cell own_cell(int first) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  return {static_cast<int>(1 + blockIdx.z), static_cast<int>(blockIdx.y), k, static_cast<int>(first + blockIdx.z)};
}

__device__ bool has_neighbours(const Cell& cell) {
  return cell.at > 0 && cell.at < I - 1 && cell.j > 0 && cell.j < J - 1 && cell.k > 0 && cell.k < K - 1;
}

__global__ void fill(Arrays x, int first) {
  const auto [i, j, k, at] = own_cell(first);
  if (k >= K) return;
  for (int m = 0; m < 3; m++) {
    x.a[i][m][j][k] = x.c[i][m][j][k] = 1;
    x.b[i][m][j][k] = 0;
  }
  x.a[i][3][j][k] = 1.0F / 6;
  x.bound[i][j][k] = 1;
  x.source[i][j][k] = 0;
  x.p[i][j][k] = static_cast<float>(at * at) / static_cast<float>((I - 1) * (I - 1));
}

// Of the threads of a block, which are a power of two; thread 0 has it.
__device__ double sum_of_block(double value) {
  __shared__ double values[kMostThreads];
  values[threadIdx.x] = value;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  return values[0];
}

// `gosas`: the sum of each block.
__global__ void sweep(Arrays x, int first, double* gosas) {
  const Plane* const p = x.p;
  const Cell cell = own_cell(first);
  double gosa = 0;
  if (has_neighbours(cell)) {
    const auto [i, j, k, at] = cell;
    const float ij = p[i + 1][j + 1][k] - p[i + 1][j - 1][k] - p[i - 1][j + 1][k] + p[i - 1][j - 1][k];
    const float jk = p[i][j + 1][k + 1] - p[i][j - 1][k + 1] - p[i][j + 1][k - 1] + p[i][j - 1][k - 1];
    const float ik = p[i + 1][j][k + 1] - p[i - 1][j][k + 1] - p[i + 1][j][k - 1] + p[i - 1][j][k - 1];
    const float sum = x.a[i][0][j][k] * p[i + 1][j][k] + x.a[i][1][j][k] * p[i][j + 1][k] +
                      x.a[i][2][j][k] * p[i][j][k + 1] + x.b[i][0][j][k] * ij + x.b[i][1][j][k] * jk +
                      x.b[i][2][j][k] * ik + x.c[i][0][j][k] * p[i - 1][j][k] + x.c[i][1][j][k] * p[i][j - 1][k] +
                      x.c[i][2][j][k] * p[i][j][k - 1] + x.source[i][j][k];
    const float residual = (sum * x.a[i][3][j][k] - p[i][j][k]) * x.bound[i][j][k];
    gosa = static_cast<double>(residual * residual);
    x.work[i][j][k] = p[i][j][k] + 0.8F * residual;
  }
  gosa = sum_of_block(gosa);
  if (threadIdx.x == 0) gosas[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = gosa;
}

__global__ void copy(Arrays x, int first) {
  const Cell cell = own_cell(first);
  if (has_neighbours(cell)) x.p[cell.i][cell.j][cell.k] = x.work[cell.i][cell.j][cell.k];
}

__global__ void total(const double* gosas, int count, double* gosa) {
  double value = 0;
  for (int n = threadIdx.x; n < count; n += blockDim.x) value += gosas[n];
  value = sum_of_block(value);
  if (threadIdx.x == 0) *gosa = value;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  choose_device();

  // Plane 1 here is plane `first` of the whole; planes 0 and rows + 1 are the halo.
  const int first = static_cast<int>(std::int64_t{I} * rank / ranks);
  const int rows = static_cast<int>(std::int64_t{I} * (rank + 1) / ranks) - first;
  const int lower = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int upper = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  const int all = rows + 2;
  Arrays x{};
  check(cudaMalloc(&x.p, all * sizeof *x.p));
  check(cudaMalloc(&x.work, all * sizeof *x.work));
  check(cudaMalloc(&x.bound, all * sizeof *x.bound));
  check(cudaMalloc(&x.source, all * sizeof *x.source));
  check(cudaMalloc(&x.a, all * sizeof *x.a));
  check(cudaMalloc(&x.b, all * sizeof *x.b));
  check(cudaMalloc(&x.c, all * sizeof *x.c));
  const dim3 blocks((K + kThreads - 1) / kThreads, J, rows);
  const int parts = static_cast<int>(blocks.x * blocks.y * blocks.z);
  double* gosas = nullptr;  // of all, and then of each block
  check(cudaMalloc(&gosas, (1 + parts) * sizeof(double)));
  fill<<<blocks, kThreads>>>(x, first);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());

  double gosa = 0;
  const double began = MPI_Wtime();
  for (int step = 0; step < STEPS; step++) {
    MPI_Request requests[4];
    MPI_Irecv(x.p[0], J * K, MPI_FLOAT, lower, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(x.p[rows + 1], J * K, MPI_FLOAT, upper, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(x.p[1], J * K, MPI_FLOAT, lower, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(x.p[rows], J * K, MPI_FLOAT, upper, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    sweep<<<blocks, kThreads>>>(x, first, gosas + 1);
    copy<<<blocks, kThreads>>>(x, first);
    total<<<1, kMostThreads>>>(gosas + 1, parts, gosas);
    check(cudaGetLastError());
    check(cudaMemcpy(&gosa, gosas, sizeof(double), cudaMemcpyDeviceToHost));  // waits for the kernels
    MPI_Allreduce(MPI_IN_PLACE, &gosa, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double took = (MPI_Wtime() - began) / STEPS;
  Plane* const p = new Plane[all];
  check(cudaMemcpy(p, x.p, all * sizeof(Plane), cudaMemcpyDeviceToHost));
  void* const arrays[] = {x.p, x.work, x.bound, x.source, x.a, x.b, x.c, gosas};
  for (void* array : arrays) check(cudaFree(array));

  std::uint64_t sum = 0;
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < J; j++)
      for (int k = 0; k < K; k++)
        sum += checksum(&p[i][j][k], sizeof(float), (std::int64_t{first + i - 1} * J + j) * K + k);
  delete[] p;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%.2f us a step  gosa %.6e  checksum %016llx\n", took * 1e6, gosa,
                static_cast<unsigned long long>(sum));
  MPI_Finalize();
  return 0;
}
