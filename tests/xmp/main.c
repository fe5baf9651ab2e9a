/* The tests of xmp.h, on any number of ranks; with `acc` those of xacc.h, on GPUs; with `splits` shadows
 * of the first paper's splits alone; with `disagree`, `disagree signals` and `disagree late` what ends at the deadline.
 */
#include "check.h"

static int failures;

void failed(const char* file, int line, const char* what) {
  ++failures;
  fprintf(stderr, "rank %d: %s:%d: not so: %s\n", me(), file, line, what);
}

void succeeds(const char* file, int line, const char* what, int status) {
  if (status == XMP_OK) return;
  failed(file, line, what);
  fprintf(stderr, "  returned %d: %s\n", status, xmp_last_error());
  xmp_exit(EXIT_FAILURE);
}

void fails(const char* file, int line, const char* what, int expected, const char* part, int status) {
  if (status != expected) {
    failed(file, line, what);
    fprintf(stderr, "  returned %d, not %d: %s\n", status, expected, xmp_last_error());
  } else if (strstr(xmp_last_error(), part) == NULL) {
    failed(file, line, what);
    fprintf(stderr, "  says '%s', which has no '%s'\n", xmp_last_error(), part);
  }
}

void verifies(const char* file, int line) {
  const char* report = NULL;
  succeeds(file, line, "xmp_verify", xmp_verify(&report));
  if (report[0] != '\0') {
    failed(file, line, "the verifier has no complaint");
    fprintf(stderr, "%s\n", report);
  }
}

int ranks(void) {
  return xmp_all_num_nodes();
}
int me(void) {
  return xmpc_all_node_num();
}

int cases(int most) {
  return ranks() > 8 ? (most + 3) / 4 : most;
}

int draw(chance* from, int least, int most) {
  from->state = from->state * 6364136223846793005u + 1442695040888963407u;
  return least + (int)((from->state >> 33) % (uint64_t)(most - least + 1));
}

/* So many nodes in 1 to 3 dimensions. */
static int random_extents(chance* from, int count, int64_t* extents) {
  const int ndims = draw(from, 1, 3);
  int left = count;
  for (int d = 0; d < ndims; ++d) extents[d] = 1;
  for (int factor = 2; left > 1;) {
    if (left % factor != 0) {
      ++factor;
      continue;
    }
    extents[draw(from, 0, ndims - 1)] *= factor;
    left /= factor;
  }
  return ndims;
}

static void random_distribution(chance* from, xmp_distribution* one, int64_t extent, int64_t nodes, int cyclic,
                                int64_t* map) {
  const int kind = draw(from, 0, cyclic ? 4 : 2);
  memset(one, 0, sizeof *one);
  one->format = XMP_BLOCK;
  if (kind == 1) one->size = (extent + nodes - 1) / nodes + draw(from, 0, 2);
  if (kind == 2) {
    int64_t left = extent;
    one->format = XMP_GBLOCK;
    for (int64_t n = 0; n < nodes; ++n) {
      map[n] = n == nodes - 1 ? left : draw(from, 0, 3) == 0 ? 0 : draw(from, 0, (int)left);
      left -= map[n];
    }
    one->map = map;
  }
  if (kind > 2) {
    one->format = XMP_CYCLIC;
    one->size = kind == 3 ? 0 : draw(from, 2, 3);
  }
}

sample make_sample(chance* from, int ndims, const int64_t* extents, int cyclic, int shadows) {
  sample s;
  int64_t node_extents[3], offsets[3] = {0, 0, 0}, map[3][16];
  xmp_range ranges[4];
  xmp_distribution distributions[4];
  int axis[3] = {XMP_COLLAPSED, XMP_COLLAPSED, XMP_COLLAPSED};
  int used = 0;
  memset(&s, 0, sizeof s);
  s.ndims = ndims;
  const int node_dims = random_extents(from, ranks(), node_extents);
  OK(xmp_nodes(&s.nodes, node_dims, node_extents));
  /* A dimension of the template for each of the nodes, and at times one more that is not distributed. */
  const int plain = draw(from, 0, 2) == 0;
  const int template_dims = node_dims + plain;
  const int first_distributed = plain && draw(from, 0, 1) ? 1 : 0;
  for (int t = 0; t < template_dims; ++t) {
    const int n = t - first_distributed;
    const int distributed = n >= 0 && n < node_dims;
    int64_t need = 1;
    int d = -1;
    if (used < ndims && draw(from, 0, 4) > 0) { /* else it is replicated there */
      do d = draw(from, 0, ndims - 1);
      while (axis[d] != XMP_COLLAPSED);
      axis[d] = t;
      ++used;
      need = extents[d];
    }
    const int below = draw(from, 0, 2), above = draw(from, 0, 2), first = draw(from, -2, 3);
    ranges[t] = (xmp_range){first, first + below + need + above, 1};
    if (d >= 0) offsets[d] = first + below;
    distributions[t] = (xmp_distribution){XMP_NOT_DISTRIBUTED, 0, NULL};
    if (distributed)
      random_distribution(from, &distributions[t], below + need + above, node_extents[n], cyclic, map[n]);
    if (d >= 0 && distributed && distributions[t].format == XMP_CYCLIC) s.any_cyclic = 1;
  }
  OK(xmp_template(&s.t, template_dims, ranges));
  OK(xmp_distribute(s.t, distributions, s.nodes));
  xmp_array_spec spec = {
      .name = "a", .type = XMP_I64, .ndims = ndims, .extents = extents, .axis = axis, .offset = offsets};
  OK(xmp_array(&s.array, &spec, s.t));
  for (int d = 0; d < ndims; ++d) {
    s.extents[d] = extents[d];
    const int has = shadows && (axis[d] == XMP_COLLAPSED || distributions[axis[d]].format != XMP_CYCLIC);
    const int below = draw(from, 0, 3), above = draw(from, 0, 3);
    if (has) s.shadow[d] = (xmp_width){below, above};
  }
  OK(xmp_shadow(s.array, s.shadow));
  OK(xmp_allocate(s.array, NULL));
  return s;
}

void free_sample(sample* s) {
  OK(xmp_free(&s->array));
  OK(xmp_free(&s->t));
  OK(xmp_free(&s->nodes));
  CHECK(s->array == NULL);
}

int64_t value_of(const int64_t* index, int ndims, int round) {
  int64_t value = round + 1;
  for (int d = 0; d < ndims; ++d) value = value * 100 + index[d];
  return value;
}

void each_owned(xmp_desc_t array, void (*visit)(const int64_t* index, int64_t* element, void* arg), void* arg) {
  xmp_view view;
  OK(xmp_get_view(array, &view));
  int64_t at[XMP_MAX_DIMS] = {0}, index[XMP_MAX_DIMS];
  if (view.bytes == 0) return;
  for (;;) { /* over the memory: an index below 0 belongs to the shadow */
    int owned = 1;
    int64_t place = 0;
    for (int d = 0; d < view.ndims; ++d) {
      index[d] = xmp_global_index(array, d, at[d]);
      owned = owned && index[d] >= 0;
      if (index[d] >= 0) CHECK(xmp_local_index(array, d, index[d]) == at[d]);
      place += at[d] * view.strides[d];
    }
    if (owned) visit(index, (int64_t*)view.data + place, arg);
    int d = view.ndims - 1;
    for (; d >= 0 && ++at[d] == view.extents[d]; --d) at[d] = 0;
    if (d < 0) return;
  }
}

typedef struct {
  int ndims, round;
} filling;

static void set_value(const int64_t* index, int64_t* element, void* arg) {
  const filling* how = (const filling*)arg;
  *element = value_of(index, how->ndims, how->round);
}

void fill(const sample* s, int round) {
  xmp_view view;
  filling how = {s->ndims, round};
  OK(xmp_get_view(s->array, &view));
  for (int64_t i = 0; i < view.bytes / 8; ++i) ((int64_t*)view.data)[i] = -1;
  each_owned(s->array, set_value, &how);
}

int main(int argc, char** argv) {
  const int acc = argc > 1 && strcmp(argv[1], "acc") == 0;
  OK(xmp_init(argc, argv));
  xmp_on_error(XMP_RETURN);
  if (argc > 1 && strcmp(argv[1], "disagree") == 0) {
    disagree(argc > 2 ? argv[2] : "");
  }
  if (argc > 1 && strcmp(argv[1], "splits") == 0) {
    test_splits();
  } else if (acc) {
    if (xacc_barrier(NULL) == XMP_NOT_POSSIBLE) {
      if (me() == 0) printf("SKIPPED: %s\n", xmp_last_error());
      return xmp_finalize();
    }
    test_shadows(1);
    test_reduce_shadow(1);
    test_moves(1);
    test_intrinsics(1);
    test_collectives(1);
  } else {
    test_loops();
    test_inquiries();
    test_shadows(0);
    if (ranks() < 8) test_splits(); /* else in launches of its own */
    test_full_shadows();
    test_reduce_shadow(0);
    test_moves(0);
    test_intrinsics(0);
    test_collectives(0);
    test_tasks();
    test_refused();
    test_misuse();
  }
  /* Every rank fails if one does. */
  int32_t any = failures > 0;
  OK(xmp_reduction(XMP_MAX, 1, &(xmp_variable){&any, 1, XMP_I32}, NULL));
  OK(xmp_finalize());
  return any ? EXIT_FAILURE : EXIT_SUCCESS;
}
