/* The patterns of data and of calls that programs use most, in C: halos of two and three dimensions, arrays of a
 * structure, a transpose. Each type goes to both neighbours of a ring of ranks by each way of calling, three times with
 * other data; each rank writes what it received to a file.
 *   mpi_patterns FILE [times]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 24, CELLS = SIDE * SIDE * SIDE, TYPES = 4, WAYS = 6 };

static const char* const type_names[TYPES] = {"vector", "hvector of vector", "subarray", "struct of arrays"};
static const char* const way_names[WAYS] = {"Isend",    "Issend",    "Sendrecv",
                                            "Startall", "Alltoallw", "Neighbor_alltoallw"};
static int rank, ranks;

/* Of a field of SIDE³ doubles. */
static MPI_Datatype make(int which) {
  MPI_Datatype type, rows;
  if (which == 0) {
    MPI_Type_vector(SIDE * SIDE, 2, SIDE, MPI_DOUBLE, &type);
  } else if (which == 1) {
    MPI_Type_vector(SIDE / 2, 1, 2, MPI_DOUBLE, &rows);
    MPI_Type_create_hvector(SIDE, 1, SIDE * SIDE * sizeof(double), rows, &type);
    MPI_Type_free(&rows);
  } else if (which == 2) {
    const int sizes[3] = {SIDE, SIDE, SIDE}, parts[3] = {SIDE - 2, SIDE - 2, 3}, starts[3] = {1, 1, 2};
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  } else {
    const int counts[3] = {300, 7, 1001};
    const MPI_Aint at[3] = {0, 5000 * sizeof(double), 9001 * sizeof(double)};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Type_create_struct(3, counts, at, types, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

static uint64_t sum(const double* field) {
  const unsigned char* bytes = (const unsigned char*)field;
  uint64_t all = 14695981039346656037u;
  for (size_t i = 0; i < CELLS * sizeof(double); ++i) all = (all ^ bytes[i]) * 1099511628211u;
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm ring;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  MPI_Comm_rank(ring, &rank);
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", argc > 1 ? argv[1] : "patterns", rank);
  FILE* out = fopen(name, "w");
  if (out == NULL) return 2;
  const int times = argc > 2 ? atoi(argv[2]) : 3;
  double* from[2];
  double* to[2]; /* towards lower and higher ranks */
  for (int i = 0; i < 2; ++i) {
    from[i] = malloc(CELLS * sizeof(double));
    to[i] = malloc(CELLS * sizeof(double));
  }
  const int ones[2] = {1, 1};
  const int peers[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
  const MPI_Aint origins[2] = {0, (char*)from[1] - (char*)from[0]}, targets[2] = {0, (char*)to[1] - (char*)to[0]};
  for (int which = 0; which < TYPES; ++which) {
    MPI_Datatype type = make(which);
    const MPI_Datatype types[2] = {type, type};
    MPI_Request requests[4], started[4];
    for (int i = 0; i < 2; ++i) {
      MPI_Recv_init(to[i], 1, type, peers[i], 10 + i, ring, &started[i]);
      MPI_Send_init(from[i], 1, type, peers[i], 11 - i, ring, &started[2 + i]);
    }
    for (int turn = 0; turn < times * WAYS; ++turn) {
      const int way = turn % WAYS;
      for (int i = 0; i < 2; ++i)
        for (int cell = 0; cell < CELLS; ++cell) {
          from[i][cell] = cell + 1e5 * turn + 1e7 * rank + 1e8 * i;
          to[i][cell] = -1;
        }
      if (way < 2) {
        for (int i = 0; i < 2; ++i) MPI_Irecv(to[i], 1, type, peers[i], i, ring, &requests[i]);
        for (int i = 0; i < 2; ++i)
          (way == 0 ? MPI_Isend : MPI_Issend)(from[i], 1, type, peers[i], 1 - i, ring, &requests[2 + i]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      } else if (way == 2) {
        for (int i = 0; i < 2; ++i)
          MPI_Sendrecv(from[i], 1, type, peers[i], 5, to[1 - i], 1, type, peers[1 - i], 5, ring, MPI_STATUS_IGNORE);
      } else if (way == 3) {
        MPI_Startall(4, started);
        MPI_Waitall(4, started, MPI_STATUSES_IGNORE);
      } else if (way == 4) { /* one block to the next rank */
        int* counts = calloc((size_t)ranks * 4, sizeof *counts);
        MPI_Datatype* all = malloc((size_t)ranks * sizeof *all);
        for (int i = 0; i < ranks; ++i) all[i] = type;
        counts[peers[1]] = counts[ranks + peers[0]] = 1;
        MPI_Alltoallw(from[0], counts, counts + 2 * ranks, all, to[0], counts + ranks, counts + 3 * ranks, all, ring);
        free(counts);
        free(all);
      } else {
        MPI_Neighbor_alltoallw(from[0], ones, origins, types, to[0], ones, targets, types, ring);
      }
      fprintf(out, "%s by %s: %016llx %016llx\n", type_names[which], way_names[way], (unsigned long long)sum(to[0]),
              (unsigned long long)sum(to[1]));
    }
    for (int i = 0; i < 4; ++i) MPI_Request_free(&started[i]);
    MPI_Type_free(&type);
  }
  for (int i = 0; i < 2; ++i) {
    free(from[i]);
    free(to[i]);
  }
  MPI_Comm_free(&ring);
  fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
