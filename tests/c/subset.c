/* Parts of the ranks by themselves: subsets, and transfers that only their two ranks make. */
#include "check.h"

enum { CELLS = 101, EPOCHS = 3 };

static double value(int cell, int epoch) {
  return 10.0 * cell + epoch;
}

static void check_transfer(tasuki_context ranks, int from_rank, int to_rank) {
  double cells[CELLS];
  int rank = 0;
  tasuki_layout layout = NULL;
  tasuki_operation transfer = NULL;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_layout_bytes(sizeof cells, &layout));
  const tasuki_side from = {from_rank, cells, layout};
  const tasuki_side to = {to_rank, cells, layout};
  CHECK_OK(tasuki_transfer_create(ranks, &from, &to, NULL, &transfer));
  CHECK_OK(tasuki_layout_free(&layout));
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    int wrong = 0;
    for (int k = 0; k < CELLS; ++k) cells[k] = rank == from_rank ? value(k, epoch) : -1;
    CHECK_OK(tasuki_start(transfer));
    CHECK_OK(tasuki_wait(transfer));
    for (int k = 0; k < CELLS; ++k) wrong += cells[k] != value(k, epoch);
    CHECK(wrong == (rank == from_rank || rank == to_rank ? 0 : CELLS));
  }
  CHECK_OK(tasuki_operation_free(&transfer));
}

/* The last two ranks, while the others are at the barrier behind this. */
static void check_pair(tasuki_context ranks, int rank, int size) {
  tasuki_memory memory = NULL;
  if (size >= 2 && rank >= size - 2) {
    CHECK_OK(tasuki_shared_alloc(ranks, 8, &memory)); /* local */
    check_transfer(ranks, size - 1, size - 2);
    check_transfer(ranks, size - 2, size - 1);
    CHECK_OK(tasuki_memory_free(&memory));
  }
  CHECK_OK(tasuki_barrier(ranks));
}

/* The odd ranks by themselves, and the even ones, numbered backwards. */
static void check_subset(tasuki_context ranks, int rank, int size) {
  int list[64];
  int count = 0;
  int there = -1;
  tasuki_context part = NULL;
  for (int other = size - 1; other >= 0; --other)
    if (other % 2 == rank % 2) list[count++] = other;
  CHECK_OK(tasuki_context_subset(ranks, count, list, &part));
  CHECK_OK(tasuki_size(part, &there));
  CHECK(there == count);
  CHECK_OK(tasuki_rank(part, &there));
  CHECK(list[there] == rank);
  if (count > 1) check_transfer(part, 0, count - 1);
  CHECK_OK(tasuki_barrier(part));

  const int64_t extents[] = {9, 7};
  tasuki_grid grid = NULL;
  tasuki_field field = NULL;
  tasuki_operation halo = NULL;
  CHECK_OK(tasuki_grid_create(part, 2, extents, NULL, &grid));
  CHECK_OK(tasuki_field_create(grid, TASUKI_F64, NULL, &field));
  CHECK_OK(tasuki_halo_create(1, &field, NULL, NULL, &halo));
  check_operation(halo);
  CHECK_OK(tasuki_context_free(&part)); /* the field has it still */
  CHECK_OK(tasuki_start(halo));
  CHECK_OK(tasuki_wait(halo));
  CHECK_OK(tasuki_operation_free(&halo));
  CHECK_OK(tasuki_field_free(&field));
  CHECK_OK(tasuki_grid_free(&grid));
}

void test_subset(tasuki_context ranks) {
  int rank = 0;
  int size = 0;
  tasuki_context part = NULL;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  check_pair(ranks, rank, size);
  check_subset(ranks, rank, size);
  const int twice[] = {rank, rank};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "is empty", tasuki_context_subset(ranks, 0, NULL, &part));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "twice", tasuki_context_subset(ranks, 2, twice, &part));
  if (size > 1) {
    const int other = (rank + 1) % size;
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "does not name this rank", tasuki_context_subset(ranks, 1, &other, &part));
  }
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is -1", tasuki_context_subset(ranks, -1, twice, &part));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'ranks' is null", tasuki_context_subset(ranks, 1, NULL, &part));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'subset' is null", tasuki_context_subset(ranks, 1, &rank, NULL));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'context' is null", tasuki_context_subset(NULL, 1, &rank, &part));
  CHECK(part == NULL);
}
