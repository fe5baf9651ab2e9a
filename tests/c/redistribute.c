/* Redistributions: blocks of rows to columns that are dealt out, permuted, in a section and in memory of another order;
 * and what is said of sides that are wrong. */
#include "check.h"

enum { EPOCHS = 3, ROWS = 6, MOST = 6 * 8 * 8 };

/* Rows on ranks before; afterwards every second of them, with the axes swapped, and columns dealt out. */
static void check_dealt(tasuki_context ranks, int rank, int size) {
  const int columns = 2 * size + 1;
  const int64_t before[] = {ROWS, columns}, after[] = {columns, ROWS / 2};
  const int64_t starts[] = {1, 0}, counts[] = {ROWS / 2, columns}, steps[] = {2, 1};
  const int split[] = {1, 1}, dealt[] = {size, 1}, kinds[] = {TASUKI_CYCLIC, TASUKI_BLOCK}, axes[] = {1, 0};
  const int last = size - 1;
  float all[MOST], mine[MOST];
  const int64_t strides[] = {4, 16 * 4}; /* of the target: rows lie apart */
  tasuki_distributed from = {2, before, split, NULL, NULL, NULL, 1, &last, starts, counts, steps};
  tasuki_distributed to = {2, after, dealt, kinds, NULL, NULL, 0, NULL, NULL, NULL, NULL};
  tasuki_redistribute_array array = {4, rank == last ? all : NULL, mine, NULL, strides, "u"};
  tasuki_operation scatter = NULL;
  CHECK_OK(tasuki_redistribute_create(ranks, &from, &to, 1, &array, axes, NULL, &scatter));
  check_operation(scatter);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROWS * columns; ++i) all[i] = (float)(1000 * epoch + i);
    for (int i = 0; i < MOST; ++i) mine[i] = -1;
    CHECK_OK(tasuki_start(scatter));
    CHECK_OK(tasuki_wait(scatter));
    for (int row = 0; row < ROWS / 2; ++row)
      for (int k = 0; rank + k * size < columns; ++k)
        CHECK(mine[k + 16 * row] == (float)(1000 * epoch + (2 * row + 1) * columns + rank + k * size));
  }
  CHECK_OK(tasuki_operation_free(&scatter));
}

static void check_cuts(tasuki_context ranks, int rank, int size) {
  int64_t cuts[64], extent = 3 * size;
  const int kinds[] = {TASUKI_CUTS}, replicated[] = {TASUKI_REPLICATED};
  const int64_t* const lists[] = {cuts};
  int16_t part[192], whole[192];
  for (int r = 0; r <= size; ++r) cuts[r] = r == size ? extent : 2 * r;
  tasuki_distributed from = {1, &extent, &size, kinds, NULL, lists, 0, NULL, NULL, NULL, NULL};
  tasuki_distributed to = {1, &extent, &size, replicated, NULL, NULL, 0, NULL, NULL, NULL, NULL};
  tasuki_redistribute_array array = {2, part, whole, NULL, NULL, NULL};
  tasuki_operation gather = NULL;
  CHECK_OK(tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, NULL, &gather));
  check_operation(gather);
  for (int64_t i = cuts[rank]; i < cuts[rank + 1]; ++i) part[i - cuts[rank]] = (int16_t)(7 * i);
  CHECK_OK(tasuki_start(gather));
  CHECK_OK(tasuki_wait(gather));
  for (int i = 0; i < extent; ++i) CHECK(whole[i] == 7 * i);
  CHECK_OK(tasuki_operation_free(&gather));

  tasuki_redistribute_options options = TASUKI_REDISTRIBUTE_OPTIONS_INIT;
  options.scratch = -5;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "argument 'scratch' is -5; it must be 0 (no limit) or more bytes",
              tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, &options, &gather));
  options.scratch = 10000;
  CHECK_OK(tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, &options, &gather));
  check_operation(gather);
  CHECK_OK(tasuki_operation_free(&gather));

  from.ndims = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'from.ndims' is 0; 1 to 7 are possible",
              tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, NULL, &gather));
  from.ndims = 1;
  from.cuts = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'from.cuts' is null",
              tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, NULL, &gather));
  from.cuts = lists;
  array.cell_bytes = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'arrays[0].cell_bytes' is 0",
              tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, NULL, &gather));
  array.cell_bytes = 2;
  ++cuts[size];
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "argument 'from': the cuts of dimension 0 go from 0 to",
              tasuki_redistribute_create(ranks, &from, &to, 1, &array, NULL, NULL, &gather));
  CHECK(gather == NULL);
}

void test_redistribute(tasuki_context ranks) {
  int rank = -1, size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  check_dealt(ranks, rank, size);
  check_cuts(ranks, rank, size);
}
