/* Contexts: over communicators of C and Fortran, deadline, gathering, texts. */
#include "check.h"

void test_context(tasuki_context ranks) {
  int rank = -1;
  int size = -1;
  double seconds = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  char* text = NULL;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  CHECK(rank >= 0 && rank < size);
  CHECK_OK(tasuki_describe(ranks, &text));
  CHECK(strstr(text, "rank 0: host") != NULL);
  tasuki_text_free(text);
  CHECK_OK(tasuki_set_deadline(ranks, 17.5));
  CHECK_OK(tasuki_deadline(ranks, &seconds));
  CHECK(seconds == 17.5);
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'seconds' is 0", tasuki_set_deadline(ranks, 0));
  CHECK_OK(tasuki_barrier(ranks));

  for (int turn = 0; turn < 3; ++turn) {
    const int32_t mine[3] = {rank, rank * rank, turn};
    int32_t(*all)[3] = malloc((size_t)size * sizeof *all);
    CHECK_OK(tasuki_allgather(ranks, mine, sizeof mine, all));
    for (int r = 0; r < size; ++r) CHECK(all[r][0] == r && all[r][1] == r * r && all[r][2] == turn);
    free(all);
  }
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'bytes' is 18446744073709551615", tasuki_allgather(ranks, &rank, SIZE_MAX, &size));
  CHECK_OK(tasuki_allgather(ranks, NULL, 0, NULL));
  int numbers[64] = {0};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'mine' is null",
              tasuki_allgather(ranks, rank == 0 ? NULL : &rank, sizeof rank, numbers));
  if (size > 1)
    CHECK_FAILS(TASUKI_DISAGREEMENT, "rank 0 has 1, rank 1 has 2",
                tasuki_allgather(ranks, "ab", rank == 0 ? 1 : 2, numbers));

  CHECK_OK(tasuki_comm(ranks, &comm));
  if (comm == MPI_COMM_NULL) return; /* threads as ranks */
  tasuki_context again = NULL;
  CHECK_OK(tasuki_context_create(comm, &again));
  CHECK_OK(tasuki_barrier(again));
  CHECK_OK(tasuki_context_free(&again));
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(comm, rank % 2, rank, &half);
  CHECK_OK(tasuki_context_create_f(MPI_Comm_c2f(half), &again));
  MPI_Comm_free(&half);
  int there = 0;
  CHECK_OK(tasuki_size(again, &there));
  CHECK(there == (size + 1 - rank % 2) / 2);
  CHECK_OK(tasuki_context_free(&again));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "MPI_COMM_NULL", tasuki_context_create(MPI_COMM_NULL, &again));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "MPI_COMM_NULL", tasuki_context_create_f(MPI_Comm_c2f(MPI_COMM_NULL), &again));
  CHECK(again == NULL);
}
