/* The Himeno benchmark in MPI and OpenACC: what himeno_xacc_square.c is without XcalableMP. The first dimension is
 * split over the ranks, each of which has at least one plane; the pressures are the same, bit by bit. MPI must take
 * memory of the GPU.
 *   OMPI_CC=nvc mpicc -acc -Mnofma -O2 -I directives/runtime/examples himeno_mpi_acc.c
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENACC
#include <openacc.h>
#endif

#include "checksum.h"

#ifndef I
#define I 33
#define J 34
#define K 65
#define STEPS 3
#endif

/* The coefficients of one i are together, so that all arrays are split alike. */
typedef float plane[J][K];
static plane *p, *work, *bound, *source;
static plane (*a)[4], (*b)[3], (*c)[3];

/* One GPU for each rank of a host. */
static void choose_device(void) {
#ifdef _OPENACC
  MPI_Comm host;
  int rank;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_free(&host);
  const acc_device_t type = acc_get_device_type();
  acc_set_device_num(rank % acc_get_num_devices(type), type);
#endif
}

static void* planes(int count, size_t bytes) {
  void* const memory = malloc((size_t)count * bytes);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  return memory;
}

static void fill(int first, int rows) {
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < J; j++)
      for (int k = 0; k < K; k++) {
        const int at = first + i - 1;
        for (int m = 0; m < 3; m++) {
          a[i][m][j][k] = c[i][m][j][k] = 1;
          b[i][m][j][k] = 0;
        }
        a[i][3][j][k] = 1.0f / 6;
        bound[i][j][k] = 1;
        source[i][j][k] = 0;
        p[i][j][k] = (float)(at * at) / (float)((I - 1) * (I - 1));
      }
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  choose_device();

  /* Plane 1 here is plane `first` of the whole; planes 0 and rows + 1 are the halo. */
  const int first = (int)((int64_t)I * rank / ranks), end = (int)((int64_t)I * (rank + 1) / ranks);
  const int rows = end - first, all = rows + 2;
  const int lower = rank > 0 ? rank - 1 : MPI_PROC_NULL, upper = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  const int from = rank > 0 ? 1 : 2, to = rank < ranks - 1 ? rows : rows - 1;
  p = planes(all, sizeof *p);
  work = planes(all, sizeof *work);
  bound = planes(all, sizeof *bound);
  source = planes(all, sizeof *source);
  a = planes(all, sizeof *a);
  b = planes(all, sizeof *b);
  c = planes(all, sizeof *c);
  fill(first, rows);

  double gosa = 0;
#pragma acc enter data copyin(p [0:all], bound [0:all], source [0:all], a [0:all], b [0:all], c [0:all])
#pragma acc enter data create(work [0:all])
  const double began = MPI_Wtime();
  for (int step = 0; step < STEPS; step++) {
    gosa = 0;
#pragma acc host_data use_device(p)
    {
      MPI_Request requests[4];
      MPI_Irecv(p[0], J * K, MPI_FLOAT, lower, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(p[rows + 1], J * K, MPI_FLOAT, upper, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(p[1], J * K, MPI_FLOAT, lower, 1, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(p[rows], J * K, MPI_FLOAT, upper, 0, MPI_COMM_WORLD, &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
#pragma acc parallel loop collapse(3) default(present) reduction(+ : gosa)
    for (int i = from; i <= to; i++)
      for (int j = 1; j < J - 1; j++)
        for (int k = 1; k < K - 1; k++) {
          const float ij = p[i + 1][j + 1][k] - p[i + 1][j - 1][k] - p[i - 1][j + 1][k] + p[i - 1][j - 1][k];
          const float jk = p[i][j + 1][k + 1] - p[i][j - 1][k + 1] - p[i][j + 1][k - 1] + p[i][j - 1][k - 1];
          const float ik = p[i + 1][j][k + 1] - p[i - 1][j][k + 1] - p[i + 1][j][k - 1] + p[i - 1][j][k - 1];
          const float sum = a[i][0][j][k] * p[i + 1][j][k] + a[i][1][j][k] * p[i][j + 1][k] +
                            a[i][2][j][k] * p[i][j][k + 1] + b[i][0][j][k] * ij + b[i][1][j][k] * jk +
                            b[i][2][j][k] * ik + c[i][0][j][k] * p[i - 1][j][k] + c[i][1][j][k] * p[i][j - 1][k] +
                            c[i][2][j][k] * p[i][j][k - 1] + source[i][j][k];
          const float residual = (sum * a[i][3][j][k] - p[i][j][k]) * bound[i][j][k];
          gosa += (double)(residual * residual);
          work[i][j][k] = p[i][j][k] + 0.8f * residual;
        }
#pragma acc parallel loop collapse(3) default(present)
    for (int i = from; i <= to; i++)
      for (int j = 1; j < J - 1; j++)
        for (int k = 1; k < K - 1; k++) p[i][j][k] = work[i][j][k];
    MPI_Allreduce(MPI_IN_PLACE, &gosa, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double took = (MPI_Wtime() - began) / STEPS;
#pragma acc exit data copyout(p [0:all]) delete (bound [0:all], source [0:all], a [0:all], b [0:all], c [0:all])
#pragma acc exit data delete (work [0:all])

  uint64_t total = 0;
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < J; j++)
      for (int k = 0; k < K; k++)
        total += checksum(&p[i][j][k], sizeof(float), ((int64_t)(first + i - 1) * J + j) * K + k);
  MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%.2f us a step  gosa %.6e  checksum %016llx\n", took * 1e6, gosa, (unsigned long long)total);
  MPI_Finalize();
  return 0;
}
