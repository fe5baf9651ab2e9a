/* Collectives of memory that is not contiguous: each against plain loops, with new data at every start, with layouts
 * that differ between the sides and between the ranks; and what is said about wrong ones. */
#include "check.h"

enum { EPOCHS = 3, MOST = 8, COUNT = 3, STEP = 4, ROOM = MOST * COUNT * STEP };

struct ranks {
  tasuki_context context;
  int rank, size;
  tasuki_layout number;     /* a double */
  tasuki_layout one;        /* COUNT doubles, a distance apart that depends on the rank */
  tasuki_layout flat;       /* COUNT doubles without gaps */
  tasuki_layout many[MOST]; /* blocks of COUNT doubles, a gap behind each, another one for each rank */
  tasuki_layout flats[MOST];
  int step, gap; /* of `one`, in doubles; of `many` */
};

static double value(int epoch, int rank, int64_t k) {
  return 100.0 * epoch + 10.0 * rank + (double)k;
}

static double sum_of(int epoch, int first, int last, int64_t k) {
  double sum = 0;
  for (int r = first; r <= last; ++r) sum += value(epoch, r, k);
  return sum;
}

static void run(tasuki_operation operation) {
  CHECK_OK(tasuki_start(operation));
  CHECK_OK(tasuki_wait(operation));
}

/* Where a number of `one` is, and one of block b of `many`. */
static int one_at(const struct ranks* r, int k) {
  return r->step * k;
}
static int many_at(const struct ranks* r, int b, int k) {
  return b * (COUNT + r->gap) + k;
}

static void make_layouts(struct ranks* r) {
  int64_t counts[MOST], displacements[MOST];
  r->step = 2 + r->rank % 3;
  r->gap = 1 + r->rank % 2;
  CHECK_OK(tasuki_layout_bytes(sizeof(double), &r->number));
  CHECK_OK(tasuki_layout_vector(COUNT, 1, r->step, r->number, &r->one));
  CHECK_OK(tasuki_layout_contiguous(COUNT, r->number, &r->flat));
  for (int b = 0; b < r->size; ++b) {
    counts[b] = COUNT;
    displacements[b] = many_at(r, b, 0);
  }
  CHECK_OK(tasuki_blocks_of_counts(r->number, r->size, counts, displacements, r->many));
  CHECK_OK(tasuki_blocks_of(r->flat, r->size, r->flats));
}

/* The three forms name the same bytes. */
static void check_blocks(const struct ranks* r) {
  const int64_t counts[] = {2, 0, 3}, in_elements[] = {5, 1, 0}, in_bytes[] = {40, 8, 0};
  tasuki_layout a[3] = {NULL}, b[3] = {NULL}, c[2] = {NULL};
  const tasuki_layout numbers[] = {r->number, r->number, r->number};
  int equal = 0;
  CHECK_OK(tasuki_blocks_of_counts(r->number, 3, counts, in_elements, a));
  CHECK_OK(tasuki_blocks_of_elements(3, numbers, counts, in_bytes, b));
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(tasuki_layout_equal(a[i], b[i], &equal));
    CHECK(equal);
  }
  tasuki_layout_info info = {.size = sizeof info};
  CHECK_OK(tasuki_blocks_of(r->flat, 2, c));
  CHECK_OK(tasuki_layout_get_info(c[1], &info));
  CHECK(info.true_lower_bound == COUNT * 8 && info.bytes == COUNT * 8);
  CHECK_OK(tasuki_blocks_of(r->flat, 0, NULL));
  CHECK_OK(tasuki_layouts_free(0, NULL));
  CHECK_OK(tasuki_layouts_free(3, b));
  CHECK(b[0] == NULL && b[1] == NULL && b[2] == NULL);
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'layouts[0]' is null", tasuki_layouts_free(3, b));
  tasuki_layout twice[] = {c[0], c[0]};
  CHECK_FAILS(TASUKI_BAD_HANDLE, "stands in the list twice", tasuki_layouts_free(2, twice));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'layouts[0]' is freed", tasuki_layouts_free(2, c));
  CHECK_OK(tasuki_layout_free(&c[1]));
  CHECK_OK(tasuki_layouts_free(3, a));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is -1", tasuki_blocks_of(r->flat, -1, a));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'blocks' is null", tasuki_blocks_of(r->flat, 1, NULL));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'block' is null", tasuki_blocks_of(NULL, 1, a));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'counts' is null", tasuki_blocks_of_counts(r->number, 1, NULL, counts, a));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'displacements' is null", tasuki_blocks_of_counts(r->number, 1, counts, NULL, a));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'elements[0]' is null", tasuki_blocks_of_elements(1, a, counts, counts, a));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'elements' is null", tasuki_blocks_of_elements(1, NULL, counts, counts, a));
  CHECK(a[0] == NULL);
}

enum vector { ALLREDUCE, REDUCE, SCAN, EXSCAN };

/* From `one` to COUNT numbers without gaps, or in place in `one`. */
static void check_vector(const struct ranks* r, enum vector which, int in_place) {
  double in[ROOM], out[ROOM];
  const int root = r->size - 1;
  const int gets = which != REDUCE || r->rank == root;
  const int here = in_place && gets;
  const void* const from = here ? TASUKI_IN_PLACE : in;
  const tasuki_layout in_layout = here ? NULL : r->one;
  const tasuki_layout out_layout = !gets ? NULL : here ? r->one : r->flat;
  double* const to = gets ? out : NULL;
  tasuki_operation sum = NULL;
  if (which == ALLREDUCE)
    CHECK_OK(tasuki_allreduce_create_layouts(r->context, from, in_layout, to, out_layout, TASUKI_F64, TASUKI_SUM, NULL,
                                             &sum));
  else if (which == REDUCE)
    CHECK_OK(tasuki_reduce_create_layouts(r->context, root, from, in_layout, to, out_layout, TASUKI_F64, TASUKI_SUM,
                                          NULL, &sum));
  else if (which == SCAN)
    CHECK_OK(
        tasuki_scan_create_layouts(r->context, from, in_layout, to, out_layout, TASUKI_F64, TASUKI_SUM, NULL, &sum));
  else
    CHECK_OK(
        tasuki_exscan_create_layouts(r->context, from, in_layout, to, out_layout, TASUKI_F64, TASUKI_SUM, NULL, &sum));
  check_operation(sum);
  const int last = which == SCAN ? r->rank : which == EXSCAN ? r->rank - 1 : r->size - 1;
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) in[i] = out[i] = -1;
    for (int k = 0; k < COUNT; ++k) (here ? out : in)[one_at(r, k)] = value(epoch, r->rank, k);
    run(sum);
    for (int i = 0; i < ROOM && gets; ++i) {
      const int step = here ? r->step : 1;
      const int k = i / step;
      const double before = here ? value(epoch, r->rank, k) : -1;
      CHECK(out[i] == (i % step != 0 || k >= COUNT ? -1 : last < 0 ? before : sum_of(epoch, 0, last, k)));
    }
  }
  CHECK_OK(tasuki_operation_free(&sum));
}

static void check_reduce_scatter(const struct ranks* r, int in_place) {
  double in[ROOM], out[ROOM];
  tasuki_operation sum = NULL;
  CHECK_OK(tasuki_reduce_scatter_create_layouts(r->context, in_place ? TASUKI_IN_PLACE : in, r->many, out,
                                                in_place ? NULL : r->one, TASUKI_F64, TASUKI_SUM, NULL, &sum));
  check_operation(sum);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) in[i] = out[i] = -1;
    for (int b = 0; b < r->size; ++b)
      for (int k = 0; k < COUNT; ++k) (in_place ? out : in)[many_at(r, b, k)] = value(epoch, r->rank, b * COUNT + k);
    run(sum);
    for (int k = 0; k < COUNT; ++k)
      CHECK(out[in_place ? many_at(r, 0, k) : one_at(r, k)] == sum_of(epoch, 0, r->size - 1, r->rank * COUNT + k));
  }
  CHECK_OK(tasuki_operation_free(&sum));
}

/* Allgather, or gather to `root`; in place a rank's block is in its place already. */
static void check_gather(const struct ranks* r, int root, int in_place) {
  double in[ROOM], out[ROOM];
  const int gets = root < 0 || r->rank == root;
  const int here = in_place && gets;
  const void* const from = here ? TASUKI_IN_PLACE : in;
  tasuki_operation all = NULL;
  if (root < 0)
    CHECK_OK(tasuki_allgather_create_layouts(r->context, from, here ? NULL : r->one, out, r->many, NULL, &all));
  else
    CHECK_OK(tasuki_gather_create_layouts(r->context, root, from, here ? NULL : r->one, gets ? out : NULL,
                                          gets ? r->many : NULL, NULL, &all));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) in[i] = out[i] = -1;
    for (int k = 0; k < COUNT; ++k)
      (here ? out : in)[here ? many_at(r, r->rank, k) : one_at(r, k)] = value(epoch, r->rank, k);
    run(all);
    for (int i = 0; i < ROOM && gets; ++i) {
      const int b = i / (COUNT + r->gap), k = i % (COUNT + r->gap);
      CHECK(out[i] == (b < r->size && k < COUNT ? value(epoch, b, k) : -1));
    }
  }
  CHECK_OK(tasuki_operation_free(&all));
}

static void check_scatter(const struct ranks* r, int in_place) {
  double in[ROOM], out[ROOM];
  const int root = r->size / 2;
  const int gives = r->rank == root;
  const int here = in_place && gives;
  tasuki_operation part = NULL;
  CHECK_OK(tasuki_scatter_create_layouts(r->context, root, gives ? in : NULL, gives ? r->many : NULL,
                                         here ? TASUKI_IN_PLACE : out, here ? NULL : r->one, NULL, &part));
  check_operation(part);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) in[i] = out[i] = -1;
    for (int b = 0; b < r->size; ++b)
      for (int k = 0; k < COUNT; ++k) in[many_at(r, b, k)] = value(epoch, b, k);
    run(part);
    for (int i = 0; i < ROOM && !here; ++i)
      CHECK(out[i] == (i % r->step == 0 && i / r->step < COUNT ? value(epoch, r->rank, i / r->step) : -1));
  }
  CHECK_OK(tasuki_operation_free(&part));
}

/* As MPI_Alltoallw: each block has an element of its own, floats or doubles, backwards in `out`. */
static void check_alltoall(const struct ranks* r, int in_place) {
  double in[ROOM] = {0}, out[ROOM];
  tasuki_layout half = NULL, elements[MOST], sent[MOST], received[MOST];
  int64_t halves[MOST], counts[MOST], forth[MOST], back[MOST];
  CHECK_OK(tasuki_layout_bytes(4, &half));
  for (int s = 0; s < r->size; ++s) {
    const int whole = (r->rank + s) % 2; /* the same for both of a pair */
    elements[s] = whole ? r->number : half;
    counts[s] = whole ? COUNT : 2 * COUNT;
    halves[s] = 2 * COUNT;
    forth[s] = 8 * s * (COUNT + r->gap);
    back[s] = 2 * (r->size - 1 - s) * COUNT;
  }
  CHECK_OK(tasuki_blocks_of_elements(r->size, elements, counts, forth, sent));
  CHECK_OK(tasuki_blocks_of_counts(half, r->size, halves, back, received));
  tasuki_operation all = NULL;
  CHECK_OK(tasuki_alltoall_create_layouts(r->context, in_place ? TASUKI_IN_PLACE : in, in_place ? NULL : sent, out,
                                          received, NULL, &all));
  CHECK_OK(tasuki_layouts_free(r->size, sent));
  CHECK_OK(tasuki_layouts_free(r->size, received));
  CHECK_OK(tasuki_layout_free(&half));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) out[i] = -1;
    for (int s = 0; s < r->size; ++s)
      for (int k = 0; k < COUNT; ++k)
        (in_place ? out : in)[in_place ? (r->size - 1 - s) * COUNT + k : many_at(r, s, k)] =
            value(epoch, r->rank, 1000 * s + k);
    run(all);
    for (int s = 0; s < r->size; ++s)
      for (int k = 0; k < COUNT; ++k) CHECK(out[(r->size - 1 - s) * COUNT + k] == value(epoch, s, 1000 * r->rank + k));
  }
  CHECK_OK(tasuki_operation_free(&all));
}

static void check_broadcast(const struct ranks* r) {
  double data[ROOM];
  const int root = r->size - 1;
  tasuki_broadcast_options options = TASUKI_BROADCAST_OPTIONS_INIT;
  options.chunk = 16;
  tasuki_operation all = NULL;
  CHECK_OK(tasuki_broadcast_create_layout(r->context, root, data, r->one, &options, &all));
  check_operation(all);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) data[i] = value(epoch, r->rank, i);
    run(all);
    for (int i = 0; i < ROOM; ++i) {
      const int sent = i % r->step == 0 && i / r->step < COUNT;
      const int at_root = (2 + root % 3) * (i / r->step); /* where it was there */
      CHECK(data[i] == (sent ? value(epoch, root, at_root) : value(epoch, r->rank, i)));
    }
  }
  CHECK_OK(tasuki_operation_free(&all));
}

/* A ring by lists, and both ways by a grid. */
static void check_neighbours(const struct ranks* r) {
  double in[ROOM], got[ROOM], out[ROOM];
  const int above = (r->rank + 1) % r->size, under = (r->rank + r->size - 1) % r->size;
  const int64_t extents[] = {8};
  const int periodic[] = {1};
  const tasuki_neighbours ring = {1, &above, 1, &under, NULL};
  tasuki_neighbours sides = {0, NULL, 0, NULL, NULL};
  tasuki_grid_options of_grid = TASUKI_GRID_OPTIONS_INIT;
  of_grid.periodic = periodic;
  CHECK_OK(tasuki_grid_create(r->context, 1, extents, &of_grid, &sides.grid));
  tasuki_layout to[2], from[2];
  const int64_t counts[] = {COUNT, COUNT}, swapped[] = {COUNT, 0}, apart[] = {0, COUNT + 1};
  CHECK_OK(tasuki_blocks_of_counts(r->number, 2, counts, swapped, to));
  CHECK_OK(tasuki_blocks_of_counts(r->number, 2, counts, apart, from));
  tasuki_operation once = NULL, both = NULL;
  CHECK_OK(tasuki_neighbour_allgather_create_layouts(r->context, &ring, in, r->one, got, &r->flat, NULL, &once));
  CHECK_OK(tasuki_neighbour_alltoall_create_layouts(r->context, &sides, in, to, out, from, NULL, &both));
  CHECK_OK(tasuki_layouts_free(2, to));
  CHECK_OK(tasuki_layouts_free(2, from));
  check_operation(once);
  check_operation(both);
  for (int epoch = 0; epoch < EPOCHS; ++epoch) {
    for (int i = 0; i < ROOM; ++i) {
      in[i] = value(epoch, r->rank, i);
      out[i] = got[i] = -1;
    }
    run(once);
    run(both);
    for (int k = 0; k < COUNT; ++k) {
      CHECK(got[k] == value(epoch, under, (2 + under % 3) * k));
      CHECK(out[k] == value(epoch, under, k)); /* its upper neighbour's: the second block, which comes first */
      CHECK(out[COUNT + 1 + k] == value(epoch, above, COUNT + k));
    }
    CHECK(out[COUNT] == -1 && out[2 * COUNT + 1] == -1);
  }
  CHECK_OK(tasuki_operation_free(&once));
  CHECK_OK(tasuki_operation_free(&both));
  CHECK_OK(tasuki_grid_free(&sides.grid));
}

static void check_complaints(const struct ranks* r) {
  double in[ROOM] = {0}, out[ROOM] = {0};
  tasuki_context c = r->context;
  tasuki_operation made = NULL;
  tasuki_layout half = NULL, twice = NULL;
  CHECK_OK(tasuki_layout_bytes(12, &half));
  CHECK_OK(tasuki_layout_hvector(2, 1, 4, r->number, &twice));
  tasuki_layout freed = NULL;
  CHECK_OK(tasuki_layout_bytes(8, &freed));
  const tasuki_layout stale = freed;
  CHECK_OK(tasuki_layout_free(&freed));
  const int first = r->rank == 0;
  const int bad_handle = first ? TASUKI_BAD_HANDLE : TASUKI_BAD_ARGUMENT; /* on the others: what rank 0 has found */
  const int bad_argument = TASUKI_BAD_ARGUMENT;

  CHECK_FAILS(
      bad_handle, "'in_layout' is null",
      tasuki_allreduce_create_layouts(c, in, first ? NULL : r->one, out, r->flat, TASUKI_F64, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(
      bad_handle, "'out_layout' is freed",
      tasuki_scan_create_layouts(c, in, r->one, out, first ? stale : r->flat, TASUKI_F64, TASUKI_SUM, NULL, &made));
  /* A side that is not looked at may be null, but no stale handle. */
  CHECK_FAILS(
      TASUKI_BAD_HANDLE, "'in_layout' is freed",
      tasuki_exscan_create_layouts(c, TASUKI_IN_PLACE, stale, out, r->flat, TASUKI_F64, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(bad_argument, "'out_layouts' is null",
              tasuki_allgather_create_layouts(c, in, r->one, out, first ? NULL : r->many, NULL, &made));
  tasuki_layout some[MOST];
  memcpy(some, r->many, sizeof some);
  if (first) some[r->size - 1] = stale;
  CHECK_FAILS(bad_handle, "_layouts[", tasuki_alltoall_create_layouts(c, in, some, out, r->flats, NULL, &made));
  CHECK_FAILS(bad_argument, "'in_layouts' is null",
              tasuki_scatter_create_layouts(c, 0, in, NULL, out, r->one, NULL, &made));
  CHECK_FAILS(bad_handle, "'out_layout' is null",
              tasuki_reduce_create_layouts(c, 0, in, r->one, out, NULL, TASUKI_F64, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'root' is 99",
              tasuki_gather_create_layouts(c, 99, in, r->one, out, r->many, NULL, &made));
  CHECK_FAILS(bad_argument, "'data' is null",
              tasuki_broadcast_create_layout(c, 0, first ? NULL : out, r->one, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'type' is TASUKI_BYTES",
              tasuki_reduce_scatter_create_layouts(c, in, r->many, out, r->one, TASUKI_BYTES, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "no whole number of elements of f64",
              tasuki_allreduce_create_layouts(c, in, half, out, half, TASUKI_F64, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "names 24 bytes, but",
              tasuki_scan_create_layouts(c, in, r->flat, out, half, TASUKI_I32, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "overlap in memory",
              tasuki_allreduce_create_layouts(c, out, r->flat, out, r->one, TASUKI_F64, TASUKI_SUM, NULL, &made));
  CHECK_FAILS(bad_argument, "'alltoall' is null",
              tasuki_alltoall_create_layouts(c, in, r->many, out, r->flats, NULL, first ? NULL : &made));
  tasuki_neighbours nobody = {0, NULL, 0, NULL, NULL};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'neighbours' is null",
              tasuki_neighbour_allgather_create_layouts(c, NULL, in, r->one, out, NULL, NULL, &made));
  CHECK_OK(tasuki_neighbour_allgather_create_layouts(c, &nobody, NULL, NULL, NULL, NULL, NULL, &made));
  run(made);
  CHECK_OK(tasuki_operation_free(&made));
  nobody.from_count = 1;
  nobody.from = &r->rank;
  nobody.to_count = 1;
  nobody.to = &r->rank;
  CHECK_FAILS(
      bad_handle, "'out_layouts[0]' is freed",
      tasuki_neighbour_alltoall_create_layouts(c, &nobody, in, &r->one, out, first ? &stale : &r->flat, NULL, &made));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "bytes",
              tasuki_neighbour_alltoall_create_layouts(c, &nobody, in, &r->one, out, &half, NULL, &made));
  if (r->size > 1) {
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "names a byte twice",
                tasuki_broadcast_create_layout(c, 0, out, twice, NULL, &made));
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'out_layouts' for rank 1 of rank 0",
                tasuki_allgather_create_layouts(c, in, r->rank == 1 ? half : r->flat, out, r->flats, NULL, &made));
    CHECK_FAILS(TASUKI_DISAGREEMENT, "all ranks of a context must make the same",
                first ? tasuki_allgather_create(c, in, out, COUNT, NULL, TASUKI_F64, NULL, &made)
                      : tasuki_allgather_create_layouts(c, in, r->flat, out, r->flats, NULL, &made));
  }
  CHECK(made == NULL);
  CHECK_OK(tasuki_layout_free(&half));
  CHECK_OK(tasuki_layout_free(&twice));
}

void test_collective_layouts(tasuki_context context) {
  struct ranks r = {.context = context};
  CHECK_OK(tasuki_rank(context, &r.rank));
  CHECK_OK(tasuki_size(context, &r.size));
  CHECK(r.size <= MOST);
  make_layouts(&r);
  check_blocks(&r);
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (int which = ALLREDUCE; which <= EXSCAN; ++which) check_vector(&r, (enum vector)which, in_place);
    check_reduce_scatter(&r, in_place);
    check_gather(&r, -1, in_place);
    check_gather(&r, r.size - 1, in_place);
    check_scatter(&r, in_place);
    check_alltoall(&r, in_place);
  }
  check_broadcast(&r);
  check_neighbours(&r);
  check_complaints(&r);
  CHECK_OK(tasuki_layouts_free(r.size, r.many));
  CHECK_OK(tasuki_layouts_free(r.size, r.flats));
  CHECK_OK(tasuki_layout_free(&r.one));
  CHECK_OK(tasuki_layout_free(&r.flat));
  CHECK_OK(tasuki_layout_free(&r.number));
}
