/* Laplace's equation by Jacobi's method in MPI and OpenACC: what laplace_xacc_square.c is without XcalableMP. The rows
 * are split over the ranks, each of which has at least one; the values are the same, bit by bit. MPI must take memory
 * of the GPU.
 *   OMPI_CC=nvc mpicc -acc -Mnofma -O2 -I directives/runtime/examples laplace_mpi_acc.c
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENACC
#include <openacc.h>
#endif

#include "checksum.h"

#ifndef ROWS
#define ROWS 64
#define COLUMNS 64
#define STEPS 100
#endif

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

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  choose_device();

  /* Row 1 here is row `first` of the whole; rows 0 and rows + 1 are the halo. */
  const int first = (int)((int64_t)ROWS * rank / ranks), end = (int)((int64_t)ROWS * (rank + 1) / ranks);
  const int rows = end - first;
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  const int from = rank > 0 ? 1 : 2, to = rank < ranks - 1 ? rows : rows - 1;
  double(*u)[COLUMNS] = malloc((size_t)(rows + 2) * sizeof *u);
  double(*old)[COLUMNS] = malloc((size_t)(rows + 2) * sizeof *old);
  if (!u || !old) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < COLUMNS; j++) {
      const int row = first + i - 1;
      u[i][j] = row == 0 ? 1 : j == 0 ? (double)(ROWS - 1 - row) / (double)(ROWS - 1) : 0;
    }

  double change = 0;
#pragma acc enter data copyin(u [0:rows + 2]) create(old [0:rows + 2])
  const double began = MPI_Wtime();
  for (int step = 0; step < STEPS; step++) {
    change = 0;
#pragma acc parallel loop collapse(2) default(present)
    for (int i = 1; i <= rows; i++)
      for (int j = 0; j < COLUMNS; j++) old[i][j] = u[i][j];
#pragma acc host_data use_device(old)
    {
      MPI_Request requests[4];
      MPI_Irecv(old[0], COLUMNS, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(old[rows + 1], COLUMNS, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(old[1], COLUMNS, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(old[rows], COLUMNS, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
#pragma acc parallel loop collapse(2) default(present) reduction(max : change)
    for (int i = from; i <= to; i++)
      for (int j = 1; j < COLUMNS - 1; j++) {
        u[i][j] = 0.25 * ((old[i - 1][j] + old[i + 1][j]) + (old[i][j - 1] + old[i][j + 1]));
        const double difference = fabs(u[i][j] - old[i][j]);
        change = difference > change ? difference : change;
      }
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  const double took = (MPI_Wtime() - began) / STEPS;
#pragma acc exit data copyout(u [0:rows + 2]) delete (old [0:rows + 2])

  uint64_t sum = 0;
  for (int i = 1; i <= rows; i++)
    for (int j = 0; j < COLUMNS; j++) sum += checksum(&u[i][j], sizeof(double), (int64_t)(first + i - 1) * COLUMNS + j);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%.2f us a step  change %.17g  checksum %016llx\n", took * 1e6, change, (unsigned long long)sum);
  free(u);
  free(old);
  MPI_Finalize();
  return 0;
}
