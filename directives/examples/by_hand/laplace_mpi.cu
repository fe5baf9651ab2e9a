// Laplace's equation by Jacobi's method in MPI and CUDA: what laplace_xacc_square.c is without directives. The rows are
// split over the ranks, each of which has at least one; the values are the same, bit by bit. MPI must take memory of
// the GPU.
//   nvcc -ccbin mpicxx -arch=sm_90 -O2 --fmad=false -I directives/runtime/examples laplace_mpi.cu
#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "checksum.h"

#ifndef ROWS
#define ROWS 64
#define COLUMNS 64
#define STEPS 100
#endif

namespace {

using Row = double[COLUMNS];
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

// Of the threads of a block, which are a power of two; thread 0 has it.
__device__ double largest_of_block(double value) {
  __shared__ double values[kMostThreads];
  values[threadIdx.x] = value;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] = fmax(values[threadIdx.x], values[threadIdx.x + half]);
  }
  return values[0];
}

__global__ void copy(const Row* u, Row* old) {
  const int i = 1 + blockIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < COLUMNS) old[i][j] = u[i][j];
}

// `changes`: the largest one of each block.
__global__ void update(Row* u, const Row* old, int first, double* changes) {
  const int i = 1 + blockIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = first + blockIdx.y;
  double change = 0;
  if (row > 0 && row < ROWS - 1 && j > 0 && j < COLUMNS - 1) {
    u[i][j] = 0.25 * ((old[i - 1][j] + old[i + 1][j]) + (old[i][j - 1] + old[i][j + 1]));
    change = fabs(u[i][j] - old[i][j]);
  }
  change = largest_of_block(change);
  if (threadIdx.x == 0) changes[blockIdx.y * gridDim.x + blockIdx.x] = change;
}

__global__ void largest(const double* changes, int count, double* change) {
  double value = 0;
  for (int n = threadIdx.x; n < count; n += blockDim.x) value = fmax(value, changes[n]);
  value = largest_of_block(value);
  if (threadIdx.x == 0) *change = value;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  choose_device();

  // Row 1 here is row `first` of the whole; rows 0 and rows + 1 are the halo.
  const int first = static_cast<int>(std::int64_t{ROWS} * rank / ranks);
  const int rows = static_cast<int>(std::int64_t{ROWS} * (rank + 1) / ranks) - first;
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  const std::size_t bytes = (rows + 2) * sizeof(Row);
  Row* const values = new Row[rows + 2];
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < COLUMNS; j++) {
      const int row = first + i - 1;
      values[i][j] = row == 0 ? 1 : j == 0 ? static_cast<double>(ROWS - 1 - row) / static_cast<double>(ROWS - 1) : 0;
    }

  const dim3 blocks((COLUMNS + kThreads - 1) / kThreads, rows);
  const int parts = static_cast<int>(blocks.x * blocks.y);
  Row* u = nullptr;
  Row* old = nullptr;
  double* changes = nullptr;  // of all, and then of each block
  check(cudaMalloc(&u, bytes));
  check(cudaMalloc(&old, bytes));
  check(cudaMalloc(&changes, (1 + parts) * sizeof(double)));
  check(cudaMemcpy(u, values, bytes, cudaMemcpyHostToDevice));
  double change = 0;
  const double began = MPI_Wtime();
  for (int step = 0; step < STEPS; step++) {
    copy<<<blocks, kThreads>>>(u, old);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());  // MPI knows no streams
    MPI_Request requests[4];
    MPI_Irecv(old[0], COLUMNS, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(old[rows + 1], COLUMNS, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(old[1], COLUMNS, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(old[rows], COLUMNS, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    update<<<blocks, kThreads>>>(u, old, first, changes + 1);
    largest<<<1, kMostThreads>>>(changes + 1, parts, changes);
    check(cudaGetLastError());
    check(cudaMemcpy(&change, changes, sizeof(double), cudaMemcpyDeviceToHost));
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  const double took = (MPI_Wtime() - began) / STEPS;
  check(cudaMemcpy(values, u, bytes, cudaMemcpyDeviceToHost));
  check(cudaFree(u));
  check(cudaFree(old));
  check(cudaFree(changes));

  std::uint64_t sum = 0;
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < COLUMNS; j++)
      sum += checksum(&values[i][j], sizeof(double), std::int64_t{first + i - 1} * COLUMNS + j);
  delete[] values;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%.2f us a step  change %.17g  checksum %016llx\n", took * 1e6, change,
                static_cast<unsigned long long>(sum));
  MPI_Finalize();
  return 0;
}
