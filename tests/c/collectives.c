/* Collectives: every one against plain loops, with new data at every start, in place and not, with equal and with
 * individual counts; and what is said about wrong arguments. */
#include <stddef.h>

#include "check.h"

enum { EPOCHS = 3, MOST = 8, COUNT = 5, ROOM = MOST * (COUNT + MOST) };

struct ranks {
  tasuki_context context;
  int rank, size;
  int64_t counts[MOST]; /* of individual blocks: rank r has (r + 2) % 4 */
  int64_t begin[MOST + 1];
};

static double value(int epoch, int rank, int64_t k) {
  return 100.0 * epoch + 10.0 * rank + (double)k;
}

static void run(tasuki_operation operation) {
  CHECK_OK(tasuki_start(operation));
  CHECK_OK(tasuki_wait(operation));
}

static void fill(double* to, int64_t count, int epoch, int rank) {
  for (int64_t k = 0; k < count; ++k) to[k] = value(epoch, rank, k);
}

/* `combine` of two values. */
static double combined(int op, double a, double b) {
  if (op == TASUKI_MAX) return a > b ? a : b;
  return a + b;
}

/* The k-th elements of ranks first to last. */
static double all_of(int op, int epoch, int first, int last, int64_t k) {
  double sum = value(epoch, first, k);
  for (int r = first + 1; r <= last; ++r) sum = combined(op, sum, value(epoch, r, k));
  return sum;
}

static void check_allreduce(const struct ranks* r, int in_place, int op, const char* algorithm, int tune) {
  double in[COUNT] = {0}, out[COUNT] = {0};
  tasuki_collective_options options = TASUKI_COLLECTIVE_OPTIONS_INIT;
  options.algorithm = algorithm;
  options.tune = tune;
  options.correct = tune == 0;
  tasuki_operation sum = NULL;
  CHECK_OK(
      tasuki_allreduce_create(r->context, in_place ? TASUKI_IN_PLACE : in, out, COUNT, TASUKI_F64, op, &options, &sum));
  check_operation(sum);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    fill(in_place ? out : in, COUNT, epoch, r->rank);
    run(sum);
    for (int k = 0; k < COUNT; ++k) CHECK(out[k] == all_of(op, epoch, 0, r->size - 1, k));
  }
  CHECK_OK(tasuki_operation_free(&sum));
}

static void check_reduce(const struct ranks* r, int in_place) {
  double in[COUNT] = {0}, out[COUNT] = {0};
  const int root = r->size - 1;
  const int here = in_place && r->rank == root;
  tasuki_collective_options options = TASUKI_COLLECTIVE_OPTIONS_INIT;
  options.algorithm = "trees";
  options.trees = 2;
  options.arity = 1;
  options.chunk = 16;
  tasuki_operation sum = NULL;
  CHECK_OK(tasuki_reduce_create(r->context, root, here ? TASUKI_IN_PLACE : in, r->rank == root ? out : NULL, COUNT,
                                TASUKI_F64, TASUKI_SUM, &options, &sum));
  check_operation(sum);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    fill(here ? out : in, COUNT, epoch, r->rank);
    run(sum);
    for (int k = 0; k < COUNT && r->rank == root; ++k) CHECK(out[k] == all_of(TASUKI_SUM, epoch, 0, r->size - 1, k));
  }
  CHECK_OK(tasuki_operation_free(&sum));
}

static void check_reduce_scatter(const struct ranks* r, int in_place, int individual) {
  double in[ROOM] = {0}, out[ROOM] = {0};
  tasuki_operation sum = NULL;
  CHECK_OK(tasuki_reduce_scatter_create(r->context, in_place ? TASUKI_IN_PLACE : in, out, COUNT,
                                        individual ? r->counts : NULL, TASUKI_F64, TASUKI_SUM, NULL, &sum));
  check_operation(sum);
  const int64_t begin = individual ? r->begin[r->rank] : COUNT * r->rank;
  const int64_t count = individual ? r->counts[r->rank] : COUNT;
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    fill(in_place ? out : in, individual ? r->begin[r->size] : COUNT * r->size, epoch, r->rank);
    run(sum);
    for (int64_t k = 0; k < count; ++k) CHECK(out[k] == all_of(TASUKI_SUM, epoch, 0, r->size - 1, begin + k));
  }
  CHECK_OK(tasuki_operation_free(&sum));
}

/* Allgather, or gather to `root`. */
static void check_gather(const struct ranks* r, int root, int in_place, int individual) {
  double in[ROOM] = {0}, out[ROOM] = {0};
  const int64_t* const counts = individual ? r->counts : NULL;
  const int gets = root < 0 || r->rank == root;
  const int here = in_place && gets;
  const int64_t mine = individual ? r->counts[r->rank] : COUNT;
  const int64_t begin = individual ? r->begin[r->rank] : COUNT * r->rank;
  tasuki_operation all = NULL;
  if (root < 0)
    CHECK_OK(
        tasuki_allgather_create(r->context, here ? TASUKI_IN_PLACE : in, out, COUNT, counts, TASUKI_F64, NULL, &all));
  else
    CHECK_OK(tasuki_gather_create(r->context, root, here ? TASUKI_IN_PLACE : in, gets ? out : NULL, COUNT, counts,
                                  TASUKI_F64, NULL, &all));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    fill(here ? out + begin : in, mine, epoch, r->rank);
    run(all);
    for (int s = 0; s < r->size && gets; ++s) {
      const int64_t at = individual ? r->begin[s] : COUNT * s;
      const int64_t count = individual ? r->counts[s] : COUNT;
      for (int64_t k = 0; k < count; ++k) CHECK(out[at + k] == value(epoch, s, k));
    }
  }
  CHECK_OK(tasuki_operation_free(&all));
}

static void check_scatter(const struct ranks* r, int in_place, int individual) {
  double in[ROOM] = {0}, out[ROOM] = {0};
  const int root = r->size / 2;
  const int here = in_place && r->rank == root;
  const int64_t count = individual ? r->counts[r->rank] : COUNT;
  const int64_t begin = individual ? r->begin[r->rank] : COUNT * r->rank;
  tasuki_operation part = NULL;
  CHECK_OK(tasuki_scatter_create(r->context, root, r->rank == root ? in : NULL, here ? TASUKI_IN_PLACE : out, COUNT,
                                 individual ? r->counts : NULL, TASUKI_F64, NULL, &part));
  check_operation(part);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    if (r->rank == root) fill(in, individual ? r->begin[r->size] : COUNT * r->size, epoch, root);
    run(part);
    for (int64_t k = 0; k < count && !here; ++k) CHECK(out[k] == value(epoch, root, begin + k));
  }
  CHECK_OK(tasuki_operation_free(&part));
}

/* Individual: rank a has (a + 2 * b) % 3 bytes for rank b. */
static void check_alltoall(const struct ranks* r, int individual) {
  unsigned char in[ROOM] = {0}, out[ROOM] = {0};
  int64_t to[MOST], from[MOST];
  for (int s = 0; s < r->size; ++s) {
    to[s] = individual ? (r->rank + 2 * s) % 3 : COUNT;
    from[s] = individual ? (s + 2 * r->rank) % 3 : COUNT;
  }
  tasuki_operation all = NULL;
  CHECK_OK(tasuki_alltoall_create(r->context, in, out, COUNT, individual ? to : NULL, individual ? from : NULL,
                                  TASUKI_BYTES, NULL, &all));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    int64_t at = 0;
    for (int s = 0; s < r->size; ++s)
      for (int64_t k = 0; k < to[s]; ++k) in[at++] = (unsigned char)(epoch * 50 + r->rank * 13 + s * 5 + k);
    run(all);
    at = 0;
    for (int s = 0; s < r->size; ++s)
      for (int64_t k = 0; k < from[s]; ++k) CHECK(out[at++] == (unsigned char)(epoch * 50 + s * 13 + r->rank * 5 + k));
  }
  CHECK_OK(tasuki_operation_free(&all));
}

static void check_scan(const struct ranks* r, int exclusive, int in_place) {
  double in[COUNT] = {0}, out[COUNT] = {0};
  tasuki_operation scan = NULL;
  const void* const from = in_place ? TASUKI_IN_PLACE : in;
  if (exclusive)
    CHECK_OK(tasuki_exscan_create(r->context, from, out, COUNT, TASUKI_F64, TASUKI_SUM, NULL, &scan));
  else
    CHECK_OK(tasuki_scan_create(r->context, from, out, COUNT, TASUKI_F64, TASUKI_SUM, NULL, &scan));
  check_operation(scan);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int k = 0; k < COUNT; ++k) out[k] = -1;
    fill(in_place ? out : in, COUNT, epoch, r->rank);
    run(scan);
    const int last = exclusive ? r->rank - 1 : r->rank;
    for (int k = 0; k < COUNT; ++k) {
      const double untouched = in_place ? value(epoch, 0, k) : -1;
      CHECK(out[k] == (last < 0 ? untouched : all_of(TASUKI_SUM, epoch, 0, last, k)));
    }
  }
  CHECK_OK(tasuki_operation_free(&scan));
}

/* A pair of a value and where it is. */
static void check_where(const struct ranks* r) {
  struct {
    double value;
    int rank;
  } mine, best;
  tasuki_operation where = NULL;
  CHECK_OK(tasuki_allreduce_create(r->context, &mine, &best, 1, TASUKI_F64_I32, TASUKI_MAXLOC, NULL, &where));
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    mine.value = (r->rank + epoch) % r->size;
    mine.rank = r->rank;
    run(where);
    CHECK(best.value == r->size - 1);
    CHECK(best.rank == (r->size - 1 - epoch % r->size));
  }
  CHECK_OK(tasuki_operation_free(&where));
}

/* x -> a x + b: composing such functions does not commute. `data` counts the calls. */
static void compose(const void* right, void* left, int64_t count, void* data) {
  const uint32_t* const second = right;
  uint32_t* const first = left;
  ++*(int*)data;
  for (int64_t i = 0; i < count; ++i) {
    first[2 * i + 1] = second[2 * i] * first[2 * i + 1] + second[2 * i + 1];
    first[2 * i] *= second[2 * i];
  }
}

/* The type is that of pairs, or of numbers of which `record` belong together. */
static void check_own(const struct ranks* r, tasuki_type type, int64_t record) {
  uint32_t in[2 * COUNT] = {0}, out[2 * COUNT] = {0}, sum[2 * COUNT] = {0};
  int calls = 0, ignored = 0;
  tasuki_operation all = NULL;
  tasuki_collective_options options = TASUKI_COLLECTIVE_OPTIONS_INIT;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "give the options 'combine' and 'combine_name'",
              tasuki_allreduce_create(r->context, in, out, COUNT, type, TASUKI_OWN, &options, &all));
  options.combine = compose;
  options.combine_name = "composition";
  options.combine_data = &calls;
  options.does_not_commute = 1;
  options.combine_record = -1;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "a record has at least 1 number",
              tasuki_allreduce_create(r->context, in, out, COUNT, type, TASUKI_OWN, &options, &all));
  options.combine_record = record;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'op' is not TASUKI_OWN",
              tasuki_allreduce_create(r->context, in, out, COUNT, type, TASUKI_MINLOC, &options, &all));
  CHECK_OK(tasuki_allreduce_create(r->context, in, out, COUNT, type, TASUKI_OWN, &options, &all));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int s = 0; s < r->size; ++s) {
      for (int k = 0; k < 2 * COUNT; ++k) in[k] = (uint32_t)(3 + 2 * s + k + 5 * epoch);
      if (s == 0)
        memcpy(sum, in, sizeof sum);
      else
        compose(in, sum, COUNT, &ignored);
    }
    for (int k = 0; k < 2 * COUNT; ++k) in[k] = (uint32_t)(3 + 2 * r->rank + k + 5 * epoch);
    run(all);
    CHECK(memcmp(out, sum, sizeof sum) == 0);
  }
  CHECK(calls > 0 || r->size == 1);
  CHECK_OK(tasuki_operation_free(&all));
}

static void check_barrier(const struct ranks* r) {
  tasuki_operation barrier = NULL;
  tasuki_collective_options options = TASUKI_COLLECTIVE_OPTIONS_INIT;
  char* why = NULL;
  int ended = 0;
  options.where = 2;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "option 'where' is 2; it must be TASUKI_HOST",
              tasuki_barrier_create(r->context, &options, &barrier));
  options.where = TASUKI_DEVICE;
  CHECK_OK(tasuki_why_no_gpu(&why));
  if (why[0] != '\0') CHECK_FAILS(TASUKI_NOT_POSSIBLE, "GPU", tasuki_barrier_create(r->context, &options, &barrier));
  tasuki_text_free(why);
  options.where = r->rank == 0 ? TASUKI_HOST : TASUKI_DEVICE;
  if (r->size > 1)
    CHECK_FAILS(TASUKI_DISAGREEMENT, "'where' differs between ranks: rank 0 has host",
                tasuki_barrier_create(r->context, &options, &barrier));
  options.size = offsetof(tasuki_collective_options, where); /* of a caller who does not know `where` */
  CHECK_OK(tasuki_barrier_create(r->context, &options, &barrier));
  CHECK_OK(tasuki_operation_free(&barrier));
  CHECK_OK(tasuki_barrier_create(r->context, NULL, &barrier));
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    CHECK_OK(tasuki_start(barrier));
    for (ended = 0; !ended;) CHECK_OK(tasuki_test(barrier, &ended));
  }
  CHECK_OK(tasuki_operation_free(&barrier));
}

/* Round the ring, one way; and to both sides of a grid. */
static void check_neighbours(const struct ranks* r) {
  const int above = (r->rank + 1) % r->size, under = (r->rank + r->size - 1) % r->size;
  const int64_t extents[] = {16};
  const int periodic[] = {1};
  double in[2 * COUNT] = {0}, out[2 * COUNT] = {0}, got[COUNT] = {0};
  tasuki_neighbours ring = {1, &above, 1, &under, NULL}, sides = {0, NULL, 0, NULL, NULL};
  tasuki_grid_options options = TASUKI_GRID_OPTIONS_INIT;
  tasuki_operation once = NULL, both = NULL;
  options.periodic = periodic;
  CHECK_OK(tasuki_grid_create(r->context, 1, extents, &options, &sides.grid));
  CHECK_OK(tasuki_neighbour_allgather_create(r->context, &ring, in, got, COUNT, NULL, TASUKI_F64, NULL, &once));
  CHECK_OK(tasuki_neighbour_alltoall_create(r->context, &sides, in, out, COUNT, NULL, NULL, TASUKI_F64, NULL, &both));
  check_operation(once);
  check_operation(both);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    fill(in, 2 * COUNT, epoch, r->rank);
    run(once);
    run(both);
    for (int k = 0; k < COUNT; ++k) {
      CHECK(got[k] == value(epoch, under, k));
      CHECK(out[k] == value(epoch, under, COUNT + k));
      CHECK(out[COUNT + k] == value(epoch, above, k));
    }
  }
  CHECK_OK(tasuki_operation_free(&once));
  CHECK_OK(tasuki_operation_free(&both));
  CHECK_OK(tasuki_grid_free(&sides.grid));
  CHECK_FAILS(
      TASUKI_BAD_ARGUMENT, "'in' is in_place, which neighbour collectives do not know",
      tasuki_neighbour_allgather_create(r->context, &ring, TASUKI_IN_PLACE, got, 1, NULL, TASUKI_F64, NULL, &once));
  ring.to_count = -1;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'neighbours.to_count' is -1",
              tasuki_neighbour_allgather_create(r->context, &ring, in, got, 1, NULL, TASUKI_F64, NULL, &once));
  ring.to_count = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "in 'from' 1 times",
              tasuki_neighbour_alltoall_create(r->context, &ring, in, got, 1, NULL, NULL, TASUKI_F64, NULL, &once));
}

static void check_complaints(const struct ranks* r) {
  double in[ROOM] = {0}, out[ROOM] = {0};
  tasuki_context c = r->context;
  tasuki_operation made = NULL;
  tasuki_collective_options wrong = TASUKI_COLLECTIVE_OPTIONS_INIT;
  wrong.algorithm = "fastest";
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "no algorithm 'fastest'",
              tasuki_allreduce_create(c, in, out, 1, TASUKI_F64, TASUKI_SUM, &wrong, &made));
  wrong.size = 3;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'options' says that it has 3 bytes", tasuki_barrier_create(c, &wrong, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'type' is 99", tasuki_scan_create(c, in, out, 1, 99, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'type' is TASUKI_BYTES",
              tasuki_exscan_create(c, in, out, 1, TASUKI_BYTES, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'op' is -1", tasuki_allreduce_create(c, in, out, 1, TASUKI_F64, -1, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'op' is bxor",
              tasuki_reduce_create(c, 0, in, out, 1, TASUKI_F64, TASUKI_BXOR, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'data' is in_place, but a broadcast has no other buffer",
              tasuki_broadcast_create(c, 0, TASUKI_IN_PLACE, 8, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'root' is 99",
              tasuki_gather_create(c, 99, in, out, 1, NULL, TASUKI_F64, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is -1",
              tasuki_scatter_create(c, 0, in, out, -1, NULL, TASUKI_F64, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "overlap", tasuki_allgather_create(c, in, in, 1, NULL, TASUKI_F64, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'out' is null",
              tasuki_allgather_create(c, in, NULL, 1, NULL, TASUKI_F64, NULL, &made));
  CHECK_FAILS(
      TASUKI_BAD_ARGUMENT, "'receive_counts' is null",
      tasuki_alltoall_create(c, in, out, 1, r->counts, r->rank == 0 ? NULL : r->counts, TASUKI_F64, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'barrier' is null", tasuki_barrier_create(c, NULL, r->rank == 0 ? NULL : &made));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'context' is null", tasuki_barrier_create(NULL, NULL, &made));
  if (r->size > 1) {
    CHECK_FAILS(TASUKI_DISAGREEMENT, "'count' differs between ranks",
                tasuki_allreduce_create(c, in, out, r->rank == 0 ? 1 : 2, TASUKI_F64, TASUKI_SUM, NULL, &made));
    CHECK_FAILS(TASUKI_DISAGREEMENT, "pass different arguments",
                tasuki_reduce_scatter_create(c, in, out, 1, r->rank == 0 ? r->counts : NULL, TASUKI_F64, TASUKI_SUM,
                                             NULL, &made));
  }
  CHECK(made == NULL);
}

void test_collectives(tasuki_context context) {
  struct ranks r = {context, 0, 0, {0}, {0}};
  CHECK_OK(tasuki_rank(context, &r.rank));
  CHECK_OK(tasuki_size(context, &r.size));
  CHECK(r.size <= MOST);
  for (int s = 0; s < r.size; ++s) {
    r.counts[s] = (s + 2) % 4;
    r.begin[s + 1] = r.begin[s] + r.counts[s];
  }
  for (int in_place = 0; in_place < 2; ++in_place) {
    check_allreduce(&r, in_place, TASUKI_SUM, NULL, 0);
    check_allreduce(&r, in_place, TASUKI_MAX, "ring", 0);
    if (r.size <= 2) check_allreduce(&r, in_place, TASUKI_SUM, NULL, 2);
    check_reduce(&r, in_place);
    check_scan(&r, 0, in_place);
    check_scan(&r, 1, in_place);
    for (int individual = 0; individual < 2; ++individual) {
      check_reduce_scatter(&r, in_place, individual);
      check_gather(&r, -1, in_place, individual);
      check_gather(&r, r.size - 1, in_place, individual);
      check_scatter(&r, in_place, individual);
    }
  }
  check_alltoall(&r, 0);
  check_alltoall(&r, 1);
  check_where(&r);
  check_own(&r, TASUKI_I32_I32, 0);
  check_own(&r, TASUKI_U32, 2);
  check_neighbours(&r);
  check_barrier(&r);
  check_complaints(&r);
}
