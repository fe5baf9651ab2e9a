/* Transfers, broadcasts and shared memory. */
#include "check.h"

enum { ROWS = 7, COLUMNS = 5, EPOCHS = 3 };

static void check_moves(tasuki_operation transfer, double* matrix, int rank, int last) {
  check_operation(transfer);
  const tasuki_width width = tasuki_width_of(1);
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'field' is null", tasuki_overlap(transfer, NULL, &width, NULL, NULL));
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int k = 0; k < ROWS * COLUMNS; ++k) matrix[k] = rank == 0 ? 1000.0 * epoch + k : -1;
    CHECK_OK(tasuki_start(transfer));
    CHECK_OK(tasuki_wait(transfer));
    for (int k = 0; k < ROWS * COLUMNS && rank == last; ++k)
      CHECK(matrix[k] == (k < ROWS ? 1000.0 * epoch + k * COLUMNS : -1));
  }
}

/* A column of the first rank becomes contiguous on the last. */
static void check_column(tasuki_context ranks, int rank, int size, int shared) {
  tasuki_memory memory = NULL;
  void* data = malloc(ROWS * COLUMNS * 8);
  double* matrix = data;
  if (shared) {
    CHECK_OK(tasuki_shared_alloc(ranks, ROWS * COLUMNS * 8, &memory));
    CHECK_OK(tasuki_memory_data(memory, &data));
    free(matrix);
    matrix = data;
  }
  tasuki_layout number, column, row;
  CHECK_OK(tasuki_layout_bytes(8, &number));
  CHECK_OK(tasuki_layout_vector(ROWS, 1, COLUMNS, number, &column));
  CHECK_OK(tasuki_layout_contiguous(ROWS, number, &row));
  const int last = size - 1;
  const tasuki_side from = {0, matrix, column};
  const tasuki_side to = {last, matrix, rank == last ? row : NULL}; /* its own rank needs it only */
  const tasuki_side shorter = {0, matrix, number}, nobody = {size, NULL, NULL}, unset = {0, NULL, column};
  tasuki_operation transfer = NULL;
  if (size == 1) {
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "overlap", tasuki_transfer_create(ranks, &from, &to, NULL, &transfer));
  } else {
    tasuki_transfer_options options = TASUKI_TRANSFER_OPTIONS_INIT;
    options.path = shared ? "shared" : "mpi,shared";
    CHECK_OK(tasuki_transfer_create(ranks, &from, &to, &options, &transfer));
    check_moves(transfer, matrix, rank, last);
    CHECK_OK(tasuki_operation_free(&transfer));
    if (rank == 0 || rank == last) {  // nobody else hears of what the two sides do not agree on
      CHECK_FAILS(TASUKI_BAD_ARGUMENT, "56", tasuki_transfer_create(ranks, &shorter, &to, NULL, &transfer));
    } else {
      CHECK_OK(tasuki_transfer_create(ranks, &shorter, &to, NULL, &transfer));
      CHECK_OK(tasuki_operation_free(&transfer));
    }
  }
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "rank", tasuki_transfer_create(ranks, &from, &nobody, NULL, &transfer));
  if (rank == 0 || rank == last) {
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'from.base' is null",
                tasuki_transfer_create(ranks, &unset, &to, NULL, &transfer));
  }
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'to' is null", tasuki_transfer_create(ranks, &from, NULL, NULL, &transfer));
  CHECK(transfer == NULL);
  CHECK_OK(tasuki_layout_free(&row));
  CHECK_OK(tasuki_layout_free(&column));
  CHECK_OK(tasuki_layout_free(&number));
  if (shared)
    CHECK_OK(tasuki_memory_free(&memory));
  else
    free(matrix);
}

static void check_broadcast(tasuki_context ranks, int rank, int size, int chosen) {
  enum { BYTES = 1003 };
  unsigned char bytes[BYTES];
  const int root = size - 1;
  tasuki_broadcast_options options = TASUKI_BROADCAST_OPTIONS_INIT;
  options.trees = chosen ? 2 : 0;
  options.arity = chosen ? 1 : 0;
  options.chunk = chosen ? 100 : 0;
  tasuki_operation broadcast = NULL;
  CHECK_OK(tasuki_broadcast_create(ranks, root, bytes, BYTES, &options, &broadcast));
  check_operation(broadcast);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    int wrong = 0;
    for (int k = 0; k < BYTES; ++k) bytes[k] = (unsigned char)(rank == root ? k * 3 + epoch : 255);
    CHECK_OK(tasuki_start(broadcast));
    CHECK_OK(tasuki_wait(broadcast));
    for (int k = 0; k < BYTES; ++k) wrong += bytes[k] != (unsigned char)(k * 3 + epoch);
    CHECK(wrong == 0);
  }
  CHECK_OK(tasuki_operation_free(&broadcast));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'root'", tasuki_broadcast_create(ranks, size, bytes, BYTES, NULL, &broadcast));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'bytes'", tasuki_broadcast_create(ranks, 0, bytes, -1, NULL, &broadcast));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'data' is null",
              tasuki_broadcast_create(ranks, 0, rank == root ? NULL : bytes, BYTES, NULL, &broadcast));
  CHECK(broadcast == NULL);
}

void test_transfer(tasuki_context ranks) {
  int rank = 0;
  int size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  check_column(ranks, rank, size, 0);
  check_column(ranks, rank, size, 1);
  check_broadcast(ranks, rank, size, 0);
  check_broadcast(ranks, rank, size, 1);
  tasuki_memory memory = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'bytes' is -1", tasuki_shared_alloc(ranks, -1, &memory));
  CHECK_OK(tasuki_shared_alloc(ranks, rank == 0 ? 0 : 8, &memory));
  CHECK_OK(tasuki_memory_free(&memory));
  CHECK(memory == NULL);
}
