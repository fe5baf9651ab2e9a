/* Assignments between sections of arrays of any distributions, and the intrinsics that stand on them. */
#include "check.h"

typedef struct {
  const sample* s;
  const xmp_range* section;
  const sample* from;
  const xmp_range* from_section;
  int round, from_round, wrong;
} moved;

static void check_moved(const int64_t* index, int64_t* element, void* arg) {
  moved* how = (moved*)arg;
  int64_t source[3];
  int inside = 1;
  for (int d = 0; d < how->s->ndims; ++d) {
    const xmp_range* to = &how->section[d];
    inside = inside && index[d] >= to->first && index[d] < to->end && (index[d] - to->first) % to->step == 0;
  }
  /* Both sides of these tests have equally many dimensions, all of which correspond. */
  for (int d = 0; d < how->s->ndims && inside; ++d)
    source[d] = how->from_section[d].first +
                (index[d] - how->section[d].first) / how->section[d].step * how->from_section[d].step;
  const int64_t expected =
      inside ? value_of(source, how->from->ndims, how->from_round) : value_of(index, how->s->ndims, how->round);
  how->wrong += *element != expected;
}

static void gmove(const sample* to, const xmp_range* to_section, const sample* from, const xmp_range* from_section,
                  int acc) {
  if (!acc) {
    OK(xmp_gmove(to->array, to_section, from->array, from_section));
    return;
  }
  OK(xacc_update_device(to->array));
  OK(xacc_update_device(from->array));
  OK(xacc_gmove(to->array, to_section, from->array, from_section, XACC_SYNC));
  OK(xacc_update_self(to->array));
}

static void random_moves(chance* from, int acc) {
  const int ndims = draw(from, 1, 3);
  int64_t left_extents[3], right_extents[3];
  xmp_range left[3], right[3];
  for (int d = 0; d < ndims; ++d) {
    const int count = draw(from, 0, 12) == 0 ? 0 : draw(from, 1, 6);
    for (int side = 0; side < 2; ++side) {
      const int step = draw(from, 1, 3), first = draw(from, 0, 2);
      const int end = count == 0 ? first : first + (count - 1) * step + 1;
      (side ? right : left)[d] = (xmp_range){first, end, step};
      (side ? right_extents : left_extents)[d] = end + draw(from, 0, 3) + (end == 0);
    }
  }
  sample to = make_sample(from, ndims, left_extents, 1, 1);
  sample source = make_sample(from, ndims, right_extents, 1, 1);
  if (acc) {
    OK(xacc_allocate(to.array, NULL));
    OK(xacc_allocate(source.array, NULL));
  }
  for (int round = 0; round < 2; ++round) {
    moved how = {&to, left, &source, right, round, round + 5, 0};
    fill(&to, round);
    fill(&source, round + 5);
    gmove(&to, left, &source, right, acc);
    each_owned(to.array, check_moved, &how);
    CHECK(how.wrong == 0);
  }
  moved how = {&to, left, &source, right, 3, 4, 0};
  OK(xmp_allocate(source.array, NULL)); /* elsewhere */
  if (acc) OK(xacc_allocate(source.array, NULL));
  fill(&to, 3);
  fill(&source, 4);
  if (acc) {
    OK(xacc_update_device(to.array));
    OK(xacc_update_device(source.array));
    OK(xacc_gmove_async(to.array, left, source.array, right, 2));
  } else {
    OK(xmp_gmove_async(to.array, left, source.array, right, 2));
  }
  OK(xmp_wait_async(1, (int[]){2}));
  if (acc) OK(xacc_update_self(to.array));
  each_owned(to.array, check_moved, &how);
  CHECK(how.wrong == 0);
  VERIFY();
  free_sample(&to);
  free_sample(&source);
}

/* a[0:n-1] = a[1:n] and back: the right side is read first. */
static void moves_in_place(chance* from) {
  const int64_t extents[1] = {draw(from, 2, 30)};
  const xmp_range low = {0, extents[0] - 1, 1}, high = {1, extents[0], 1};
  sample s = make_sample(from, 1, extents, 1, 0);
  for (int round = 0; round < 2; ++round) {
    moved down = {&s, &low, &s, &high, round, round, 0};
    fill(&s, round);
    OK(xmp_gmove(s.array, &low, s.array, &high));
    each_owned(s.array, check_moved, &down);
    moved up = {&s, &high, &s, &low, round, round, 0};
    fill(&s, round);
    OK(xmp_gmove(s.array, &high, s.array, &low));
    each_owned(s.array, check_moved, &up);
    CHECK(down.wrong == 0 && up.wrong == 0);
  }
  VERIFY();
  free_sample(&s);
}

/* A variable that every node has: `x[:] = a[2][:]`, and `a[:][1] = x[:]`. */
static void moves_of_variables(chance* from) {
  const int64_t extents[2] = {6, 7};
  int64_t x[7];
  xmp_desc_t variable;
  sample s = make_sample(from, 2, extents, 1, 1);
  const xmp_array_spec spec = {.name = "x", .type = XMP_I64, .ndims = 1, .extents = (int64_t[]){7}};
  OK(xmp_array(&variable, &spec, NULL));
  OK(xmp_bind(variable, x));
  fill(&s, 1);
  OK(xmp_gmove(variable, NULL, s.array, (xmp_range[]){{2, 3, 1}, {0, 7, 1}}));
  for (int64_t j = 0; j < 7; ++j) CHECK(x[j] == value_of((int64_t[]){2, j}, 2, 1));
  for (int64_t j = 0; j < 7; ++j) x[j] = j;
  OK(xmp_gmove(s.array, (xmp_range[]){{0, 6, 1}, {1, 2, 1}}, variable, (xmp_range[]){{0, 6, 1}}));
  OK(xmp_gmove(variable, (xmp_range[]){{1, 7, 1}}, s.array, (xmp_range[]){{0, 6, 1}, {1, 2, 1}}));
  for (int64_t j = 0; j < 6; ++j) CHECK(x[j + 1] == j);
  FAILS(XMP_BAD_ARGUMENT, "the left section has 7 elements, the right one 6",
        xmp_gmove(variable, NULL, s.array, (xmp_range[]){{0, 6, 1}, {1, 2, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "dimension 0 of the right side",
        xmp_gmove(variable, NULL, s.array, (xmp_range[]){{0, 7, 1}, {1, 2, 1}}));
  VERIFY();
  OK(xmp_free(&variable));
  free_sample(&s);
}

/* Sections of one array that overlap: the right side is read first, on GPUs too. */
static void overlap_on_gpus(void) {
  const int64_t extents[1] = {20};
  const xmp_range low = {0, 15, 1}, high = {5, 20, 1};
  chance from = {23};
  sample s = make_sample(&from, 1, extents, 1, 0);
  OK(xacc_allocate(s.array, NULL));
  for (int round = 0; round < 4; ++round) {
    const xmp_range *to = round % 2 ? &low : &high, *source = round % 2 ? &high : &low;
    moved how = {&s, to, &s, source, round, round, 0};
    fill(&s, round);
    OK(xacc_update_device(s.array));
    OK(xacc_gmove(s.array, to, s.array, source, round < 2 ? XACC_SYNC : 1));
    OK(xacc_barrier(NULL));
    OK(xacc_update_self(s.array));
    each_owned(s.array, check_moved, &how);
    CHECK(how.wrong == 0);
  }
  VERIFY();
  free_sample(&s);
}

static void set_seven(const int64_t* index, int64_t* element, void* arg) {
  *element = value_of(index, 7, *(const int*)arg);
}

/* Arrays of seven dimensions, one of them in static memory: a move between them, and a reflect. */
static void seven_dimensions(void) {
  enum { EXTENT = 3, STORED = 4 * 4 * 4 * 4 * 4 * 4 * 4 };
  static int64_t memory[STORED];
  const int64_t extents[7] = {EXTENT, EXTENT, EXTENT, EXTENT, EXTENT, EXTENT, EXTENT};
  xmp_desc_t p, t[2], array[2];
  xmp_range ranges[7];
  xmp_width shadow[7];
  OK(xmp_nodes(&p, 1, (int64_t[]){0}));
  for (int d = 0; d < 7; ++d) {
    ranges[d] = (xmp_range){0, EXTENT, 1};
    shadow[d] = (xmp_width){d % 2, (d + 1) % 2};
  }
  for (int k = 0; k < 2; ++k) {
    xmp_distribution distributions[7] = {{0}};
    distributions[k ? 5 : 1] = (xmp_distribution){k ? XMP_CYCLIC : XMP_BLOCK, 0, NULL};
    OK(xmp_template(&t[k], 7, ranges));
    OK(xmp_distribute(t[k], distributions, p));
    OK(xmp_array(&array[k], &(xmp_array_spec){.name = "seven", .type = XMP_I64, .ndims = 7, .extents = extents}, t[k]));
  }
  OK(xmp_shadow(array[0], shadow));
  CHECK(xmp_local_bytes(array[0]) <= (int64_t)sizeof memory);
  OK(xmp_bind(array[0], memory));
  OK(xmp_allocate(array[1], NULL));
  for (int round = 0; round < 2; ++round) {
    int wrong = 0;
    xmp_view view;
    for (int64_t i = 0; i < STORED; ++i) memory[i] = -1;
    each_owned(array[1], set_seven, &round);
    OK(xmp_gmove(array[0], NULL, array[1], NULL));
    OK(xmp_reflect(1, &array[0], NULL));
    OK(xmp_get_view(array[0], &view));
    int64_t at[7] = {0}, index[7];
    for (int64_t i = 0; i < view.bytes / 8 && view.own[1] > 0; ++i) {
      int inside = 1;
      for (int d = 0; d < 7; ++d) {
        index[d] = at[d] + view.base[d];
        inside = inside && index[d] >= 0 && index[d] < EXTENT;
      }
      wrong += memory[i] != (inside ? value_of(index, 7, round) : -1);
      for (int d = 6; d >= 0 && ++at[d] == view.extents[d]; --d) at[d] = 0;
    }
    CHECK(wrong == 0);
  }
  VERIFY();
  for (int k = 0; k < 2; ++k) {
    OK(xmp_free(&array[k]));
    OK(xmp_free(&t[k]));
  }
  OK(xmp_free(&p));
}

void test_moves(int acc) {
  chance from = {21};
  for (int n = 0; n < cases(acc ? 6 : 14); ++n) random_moves(&from, acc);
  if (acc) {
    overlap_on_gpus();
    return;
  }
  for (int n = 0; n < cases(3); ++n) moves_in_place(&from);
  for (int n = 0; n < cases(3); ++n) moves_of_variables(&from);
  seven_dimensions();
}

/* ---- transpose and matmul ---- */

static void check_transposed(const int64_t* index, int64_t* element, void* arg) {
  *(int*)arg += *element != value_of((int64_t[]){index[1], index[0]}, 2, 4);
}

static void set_small(const int64_t* index, int64_t* element, void* arg) {
  *element = index[0] * 3 - index[1] * 7 + *(int*)arg;
}

typedef struct {
  int64_t inner;
  int round, wrong;
} product;

static void check_product(const int64_t* index, int64_t* element, void* arg) {
  product* of = (product*)arg;
  int64_t sum = 0;
  for (int64_t k = 0; k < of->inner; ++k) sum += (index[0] * 3 - k * 7 + 1 + of->round) * (k * 3 - index[1] * 7 + 2);
  of->wrong += *element != sum;
}

/* b = a, transposed, in all memories. */
static void transposed(const sample* b, const sample* a, int acc) {
  int wrong = 0;
  fill(a, 4);
  fill(b, 5);
  if (acc) {
    OK(xacc_update_device(a->array));
    OK(xacc_update_device(b->array));
    OK(xacc_transpose(b->array, a->array, XACC_SYNC));
    OK(xacc_update_self(b->array));
  } else {
    OK(xmp_transpose(b->array, a->array, 0));
  }
  each_owned(b->array, check_transposed, &wrong);
  CHECK(wrong == 0);
}

/* Each way twice: the second time with other data, and what was prepared before. */
static void multiplied(const sample* c, const sample* l, const sample* r, int64_t inner, int acc) {
  for (int round = 0; round < 2; ++round)
    for (int queue = XACC_SYNC; queue <= (acc ? 1 : XACC_SYNC); queue += 2) {
      product of = {inner, round, 0};
      fill(c, 7);
      each_owned(l->array, set_small, &(int){1 + round});
      each_owned(r->array, set_small, &(int){2});
      if (acc) {
        OK(xacc_update_device(c->array));
        OK(xacc_update_device(l->array));
        OK(xacc_update_device(r->array));
        OK(xacc_matmul(c->array, l->array, r->array, queue));
        if (queue != XACC_SYNC) OK(xacc_barrier(NULL));
        OK(xacc_update_self(c->array));
      } else {
        OK(xmp_matmul(c->array, l->array, r->array));
      }
      each_owned(c->array, check_product, &of);
      CHECK(of.wrong == 0);
    }
}

void test_intrinsics(int acc) {
  chance from = {22};
  for (int n = ranks() > 8 ? 2 : 0; n < 4; ++n) {
    const int64_t extents[2] = {draw(&from, 1, 11), draw(&from, 1, 11)};
    const int64_t turned[2] = {extents[1], extents[0]}, inner = n == 3 ? 300 : draw(&from, 1, 9);
    const int64_t left[2] = {extents[0], inner}, right[2] = {inner, extents[1]};
    sample a = make_sample(&from, 2, extents, 1, 1);
    sample b = make_sample(&from, 2, turned, 1, 1);
    sample l = make_sample(&from, 2, left, 1, 1);
    sample r = make_sample(&from, 2, right, 1, 1);
    const sample* const all[] = {&a, &b, &l, &r};
    for (int k = 0; k < 4 && acc; ++k) OK(xacc_allocate(all[k]->array, NULL));
    transposed(&b, &a, acc);
    multiplied(&a, &l, &r, inner, acc);
    if (acc) /* memory elsewhere: what was prepared is of no use */
      OK(xacc_allocate(l.array, NULL));
    else
      OK(xmp_allocate(l.array, NULL));
    multiplied(&a, &l, &r, inner, acc);
    if (extents[0] != extents[1]) FAILS(XMP_BAD_ARGUMENT, "the transposed of", xmp_transpose(a.array, a.array, 0));
    if (extents[0] != inner) FAILS(XMP_BAD_ARGUMENT, "whose product it is not", xmp_matmul(r.array, l.array, a.array));
    VERIFY();
    free_sample(&a);
    free_sample(&b);
    free_sample(&l);
    free_sample(&r);
  }
}
