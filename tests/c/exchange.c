/* Exchanges of cells: a ring, both ways, with levels last and first, by cells and by layouts; and what is said of lists
 * that are wrong. */
#include "check.h"

enum { EPOCHS = 3, CELLS = 6, LEVELS = 2 };

static void run(tasuki_operation operation) {
  CHECK_OK(tasuki_start(operation));
  CHECK_OK(tasuki_wait(operation));
}

/* Cells 3 and 1 go to the rank after, and cells 4 and 5 are its like of the rank before. */
static void check_ring(tasuki_context ranks, int rank, int size, int levels_first) {
  static const int64_t sent[] = {3, 1}, received[] = {4, 5};
  const int before = (rank + size - 1) % size;
  double field[CELLS * LEVELS];
  tasuki_exchange_field u = {field, CELLS, LEVELS, TASUKI_F64, levels_first, "u"};
  tasuki_exchange_entry entries[2] = {{(rank + 1) % size, 2, sent, 0, NULL, NULL, NULL},
                                      {before, 0, NULL, 2, received, NULL, NULL}};
  tasuki_exchange_options back = TASUKI_EXCHANGE_OPTIONS_INIT;
  tasuki_operation there = NULL, reverse = NULL;
  back.reverse = 1;
  back.op = TASUKI_MAX;
  CHECK_OK(tasuki_exchange_create(ranks, 1, &u, 2, entries, NULL, &there));
  CHECK_OK(tasuki_exchange_create(ranks, 1, &u, 2, entries, &back, &reverse));
  check_operation(there);
  check_operation(reverse);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int cell = 0; cell < CELLS; ++cell)
      for (int l = 0; l < LEVELS; ++l)
        field[levels_first ? l * CELLS + cell : cell * LEVELS + l] = 100 * rank + 10 * cell + l + 1000 * epoch;
    run(there);
    for (int k = 0; k < 2; ++k)
      for (int l = 0; l < LEVELS; ++l) {
        const int64_t at = levels_first ? l * CELLS + received[k] : received[k] * LEVELS + l;
        CHECK(field[at] == (double)(100 * before + 10 * sent[k] + l + 1000 * epoch));
        field[at] += k == 0 ? 5 : -5; /* the owner's cell 3 becomes greater, its cell 1 stays */
      }
    run(reverse);
    for (int l = 0; l < LEVELS; ++l) {
      CHECK(field[levels_first ? l * CELLS + 3 : 3 * LEVELS + l] == 100 * rank + 30 + l + 1000 * epoch + 5);
      CHECK(field[levels_first ? l * CELLS + 1 : 1 * LEVELS + l] == 100 * rank + 10 + l + 1000 * epoch);
    }
  }
  CHECK_OK(tasuki_operation_free(&there));
  CHECK_OK(tasuki_operation_free(&reverse));
}

static void check_layouts(tasuki_context ranks, int rank, int size) {
  int32_t field[4] = {0, 0, 0, 0};
  tasuki_layout number = NULL, last = NULL;
  const int64_t one = 1, at = 12;
  CHECK_OK(tasuki_layout_bytes(4, &number));
  CHECK_OK(tasuki_layout_hindexed(1, &one, &at, number, &last));
  const tasuki_exchange_field bytes = {field, 16, 1, TASUKI_BYTES, 0, NULL};
  const tasuki_exchange_entry entries[2] = {{(rank + 1) % size, 0, NULL, 0, NULL, &number, NULL},
                                            {(rank + size - 1) % size, 0, NULL, 0, NULL, NULL, &last}};
  tasuki_operation exchange = NULL;
  CHECK_OK(tasuki_exchange_create(ranks, 1, &bytes, 2, entries, NULL, &exchange));
  check_operation(exchange);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    field[0] = rank + 10 * epoch;
    run(exchange);
    CHECK(field[3] == (rank + size - 1) % size + 10 * epoch);
  }
  CHECK_OK(tasuki_operation_free(&exchange));
  CHECK_OK(tasuki_layout_free(&number));
  CHECK_OK(tasuki_layout_free(&last));
}

static void check_wrong(tasuki_context ranks) {
  double field[4];
  const int64_t outside = 4;
  tasuki_exchange_field u = {field, 4, 1, TASUKI_F64, 0, NULL};
  tasuki_exchange_entry entry = {0, 1, &outside, 0, NULL, NULL, NULL};
  tasuki_exchange_options options = TASUKI_EXCHANGE_OPTIONS_INIT;
  tasuki_operation exchange = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'send' names cell 4 (place 0), but field field has 4 cells",
              tasuki_exchange_create(ranks, 1, &u, 1, &entry, NULL, &exchange));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'fields' is empty",
              tasuki_exchange_create(ranks, 0, NULL, 0, NULL, NULL, &exchange));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'fields' is null",
              tasuki_exchange_create(ranks, 1, NULL, 0, NULL, NULL, &exchange));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'entries' is null", tasuki_exchange_create(ranks, 1, &u, 1, NULL, NULL, &exchange));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'exchange' is null", tasuki_exchange_create(ranks, 1, &u, 0, NULL, NULL, NULL));
  entry.send = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'entries[0].send' is null",
              tasuki_exchange_create(ranks, 1, &u, 1, &entry, NULL, &exchange));
  entry.send_count = -1;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'entries[0].send_count' is -1",
              tasuki_exchange_create(ranks, 1, &u, 1, &entry, NULL, &exchange));
  u.numbers = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'fields[0]' has 4 cells of 0 numbers",
              tasuki_exchange_create(ranks, 1, &u, 0, NULL, NULL, &exchange));
  u.numbers = 1;
  options.op = TASUKI_OWN;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "option 'op' is 12",
              tasuki_exchange_create(ranks, 1, &u, 0, NULL, &options, &exchange));
  CHECK(exchange == NULL);
}

void test_exchange(tasuki_context ranks) {
  int rank = 0, size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  check_ring(ranks, rank, size, 0);
  check_ring(ranks, rank, size, 1);
  check_layouts(ranks, rank, size);
  check_wrong(ranks);
}
