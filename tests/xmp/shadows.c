/* Shadows: reflect of random arrays, in all its forms, against what a serial program would have there. */
#include "check.h"

#ifdef TESTS_CUDA
#include <cuda_runtime_api.h>
#endif

typedef struct {
  xmp_width width[3];
  int periodic[3];
  int orthogonal;
} fill_rule;

/* Which element of the array the place `at` of the memory stands for: `index`. 0: none, or the reflect does not reach
 * it. *outside: in how many dimensions it is not the node's own. */
static int stands_for(const sample* s, const xmp_view* view, const fill_rule* rule, const int64_t* at, int64_t* index,
                      int* outside_in) {
  int outside = 0, reached = 1;
  *outside_in = 0;
  for (int d = 0; d < s->ndims; ++d) {
    if (view->own[d] == 0) return 0; /* a node without elements has no shadow */
    int64_t global = at[d] + view->base[d];
    const int64_t end = view->first[d] + view->own[d];
    if (global < view->first[d]) {
      ++outside;
      reached = reached && global >= view->first[d] - rule->width[d].below;
    } else if (global >= end) {
      ++outside;
      reached = reached && global < end + rule->width[d].above;
    }
    if (global < 0 || global >= s->extents[d]) reached = reached && rule->periodic[d];
    global %= s->extents[d];
    index[d] = global < 0 ? global + s->extents[d] : global;
  }
  *outside_in = outside;
  return reached && !(outside > 1 && rule->orthogonal);
}

/* Of an element of the memory: what it must hold after a reflect, given that it held `before`. */
static int64_t expected(const sample* s, const xmp_view* view, const fill_rule* rule, const int64_t* at, int round,
                        int64_t before) {
  int64_t index[3];
  int outside;
  return stands_for(s, view, rule, at, index, &outside) ? value_of(index, s->ndims, round) : before;
}

static void check_shadow(const sample* s, const fill_rule* rule, int round) {
  xmp_view view;
  int wrong = 0;
  OK(xmp_get_view(s->array, &view));
  if (view.bytes == 0) return;
  int64_t at[3] = {0};
  for (int64_t i = 0; i < view.bytes / 8; ++i) {
    wrong += ((int64_t*)view.data)[i] != expected(s, &view, rule, at, round, -1);
    for (int d = s->ndims - 1; d >= 0 && ++at[d] == view.extents[d]; --d) at[d] = 0;
  }
  CHECK(wrong == 0);
}

static fill_rule random_rule(chance* from, const sample* s) {
  fill_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.orthogonal = draw(from, 0, 1);
  for (int d = 0; d < s->ndims; ++d) {
    rule.width[d] = (xmp_width){draw(from, 0, (int)s->shadow[d].below), draw(from, 0, (int)s->shadow[d].above)};
    rule.periodic[d] = draw(from, 0, 2) == 0;
  }
  return rule;
}

static fill_rule whole_shadow(const sample* s) {
  fill_rule rule;
  memset(&rule, 0, sizeof rule);
  for (int d = 0; d < s->ndims; ++d) rule.width[d] = s->shadow[d];
  return rule;
}

/* The host's memory through the GPU and back. */
static void reflect(const sample* s, const xmp_reflect_options* options, int acc) {
  if (!acc) {
    OK(xmp_reflect(1, &s->array, options));
    return;
  }
  OK(xacc_update_device(s->array));
  OK(xacc_reflect(1, &s->array, options, XACC_SYNC));
  OK(xacc_update_self(s->array));
}

static void reflect_do(const sample* s, int acc) {
  if (!acc) {
    OK(xmp_reflect_do(1, &s->array));
    return;
  }
  OK(xacc_update_device(s->array));
  OK(xacc_reflect_do(1, &s->array, 1));
  OK(xacc_barrier(NULL));
  OK(xacc_update_self(s->array));
}

static void reflect_async(const sample* s, const xmp_reflect_options* options, int acc) {
  if (acc) {
    OK(xacc_update_device(s->array));
    OK(xacc_reflect_async(1, &s->array, options, 7));
  } else {
    OK(xmp_reflect_async(1, &s->array, options, 7));
  }
  OK(xmp_wait_async(1, (int[]){7}));
  if (acc) OK(xacc_update_self(s->array));
}

static void reflect_do_async(const sample* s, int acc) {
  if (acc) {
    OK(xacc_update_device(s->array));
    OK(xacc_reflect_do_async(1, &s->array, 8));
  } else {
    OK(xmp_reflect_do_async(1, &s->array, 8));
  }
  while (!xmp_test_async(8)) continue;
  if (acc) OK(xacc_update_self(s->array));
}

static void random_shadows(chance* from, int acc) {
  const int ndims = draw(from, 1, 3);
  int64_t extents[3];
  for (int d = 0; d < ndims; ++d) extents[d] = draw(from, 1, ndims == 1 ? 40 : 12);
  sample s = make_sample(from, ndims, extents, 0, 1);
  if (acc) OK(xacc_allocate(s.array, NULL));
  const fill_rule whole = whole_shadow(&s);
  fill(&s, 0);
  reflect(&s, NULL, acc);
  check_shadow(&s, &whole, 0);
  for (int n = 0; n < 2; ++n) {
    const fill_rule rule = random_rule(from, &s);
    const xmp_reflect_options options = {.width = rule.width, .periodic = rule.periodic, .orthogonal = rule.orthogonal};
    fill(&s, 1);
    reflect(&s, &options, acc);
    check_shadow(&s, &rule, 1);
    fill(&s, 2); /* the same plan, other data */
    reflect(&s, &options, acc);
    check_shadow(&s, &rule, 2);
    if (acc) {
      OK(xacc_reflect_init(1, &s.array, &options));
    } else {
      OK(xmp_reflect_init(1, &s.array, &options));
    }
    for (int round = 3; round < 6; ++round) {
      fill(&s, round);
      reflect_do(&s, acc);
      check_shadow(&s, &rule, round);
    }
    fill(&s, 6);
    reflect_async(&s, &options, acc);
    check_shadow(&s, &rule, 6);
    fill(&s, 7);
    reflect_do_async(&s, acc);
    check_shadow(&s, &rule, 7);
    if (acc) { /* other memory on the GPU: the older plan is of no use */
      CHECK(xacc_reflect_explain(s.array) != NULL);
      OK(xacc_allocate(s.array, NULL));
      fill(&s, 8);
      reflect_do(&s, acc);
      check_shadow(&s, &rule, 8);
      continue;
    }
    /* Memory that is bound anew: the older plan is of no use. */
    void* const mine = malloc((size_t)xmp_local_bytes(s.array) + 8);
    OK(xmp_bind(s.array, mine));
    fill(&s, 8);
    OK(xmp_reflect_do(1, &s.array));
    check_shadow(&s, &rule, 8);
    fill(&s, 9);
    OK(xmp_reflect(1, &s.array, NULL));
    check_shadow(&s, &whole, 9);
    OK(xmp_allocate(s.array, NULL));
    free(mine);
    fill(&s, 10);
    OK(xmp_reflect_do(1, &s.array));
    check_shadow(&s, &rule, 10);
  }
  VERIFY();
  free_sample(&s);
}

/* Several arrays in one call, of which some lie over other nodes. */
static void shadows_together(chance* from) {
  sample s[3];
  xmp_desc_t arrays[3];
  fill_rule rule[3];
  for (int n = 0; n < 3; ++n) {
    const int64_t extents[2] = {draw(from, 1, 12), draw(from, 1, 12)};
    s[n] = make_sample(from, 2, extents, 0, 1);
    arrays[n] = s[n].array;
    rule[n] = whole_shadow(&s[n]);
  }
  OK(xmp_reflect_init(3, arrays, NULL));
  for (int round = 0; round < 3; ++round) {
    for (int n = 0; n < 3; ++n) fill(&s[n], round + n);
    if (round == 2) { /* one of them elsewhere */
      OK(xmp_allocate(arrays[1], NULL));
      fill(&s[1], round + 1);
    }
    OK(xmp_reflect_do(3, arrays));
    for (int n = 0; n < 3; ++n) check_shadow(&s[n], &rule[n], round + n);
  }
  FAILS(XMP_BAD_ARGUMENT, "initialised together with 2 others", xmp_reflect_do(1, arrays));
  VERIFY();
  for (int n = 0; n < 3; ++n) free_sample(&s[n]);
}

/* The splits of the first paper, in whatever islands the launch makes: all of a shadow, narrower ones, corners or not,
 * periodic or not, of extents that are no multiples of the nodes. */
static void split_shadows(chance* from, const int64_t* split, const char* mapping) {
  sample s;
  xmp_range ranges[3];
  memset(&s, 0, sizeof s);
  s.ndims = 3;
  OK(xmp_nodes_mapped(&s.nodes, 3, split, mapping, NULL));
  for (int d = 0; d < 3; ++d) {
    s.extents[d] = 2 * split[d] + draw(from, 1, 4);
    s.shadow[d] = (xmp_width){draw(from, 0, 2), draw(from, 1, 3)};
    ranges[d] = (xmp_range){0, s.extents[d], 1};
  }
  OK(xmp_template(&s.t, 3, ranges));
  OK(xmp_distribute(s.t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}},
                    s.nodes));
  const xmp_array_spec spec = {.name = "split", .type = XMP_I64, .ndims = 3, .extents = s.extents};
  OK(xmp_array(&s.array, &spec, s.t));
  OK(xmp_shadow(s.array, s.shadow));
  OK(xmp_allocate(s.array, NULL));
  for (int n = 0; n < 3; ++n) {
    const fill_rule rule = n == 0 ? whole_shadow(&s) : random_rule(from, &s);
    const xmp_reflect_options options = {.width = rule.width, .periodic = rule.periodic, .orthogonal = rule.orthogonal};
    OK(xmp_reflect_init(1, &s.array, &options));
    for (int round = 0; round < 2; ++round) {
      fill(&s, round);
      OK(xmp_reflect_do(1, &s.array));
      check_shadow(&s, &rule, round);
    }
  }
  VERIFY();
  free_sample(&s);
}

/* Whatever the order of the nodes, each has a place of its own, and a number that says it. */
static void mapped_nodes(const char* mapping) {
  xmp_desc_t nodes;
  int32_t places[16] = {0};
  int index[2];
  OK(xmp_nodes_mapped(&nodes, 2, (int64_t[]){0, ranks() % 2 == 0 ? 2 : 1}, mapping, (int64_t[]){100, 300}));
  for (int d = 0; d < 2; ++d) {
    OK(xmp_nodes_index(nodes, d + 1, &index[d]));
    --index[d];
  }
  places[xmp_node_number(nodes, index)] = 1;
  if (strcmp(mapping, "row") == 0) CHECK(xmp_node_number(nodes, index) == me());
  if (strcmp(mapping, "column") == 0 && ranks() % 2 == 0)
    CHECK(index[0] == me() % (ranks() / 2) && index[1] == me() / (ranks() / 2));
  OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){places, 16, XMP_I32}, NULL));
  for (int n = 0; n < 16; ++n) CHECK(places[n] == (n < ranks()));
  OK(xmp_free(&nodes));
}

void test_splits(void) {
  static const char* const mappings[] = {"row", "column", "blocks", "hops"};
  chance from = {13};
  xmp_desc_t nodes = NULL;
  for (int n = 0; n < 4; ++n) mapped_nodes(mappings[n]);
  if (ranks() == 8) {
    split_shadows(&from, (int64_t[]){4, 2, 1}, "row");
    split_shadows(&from, (int64_t[]){2, 4, 1}, "hops");
  }
  if (ranks() == 16) split_shadows(&from, (int64_t[]){2, 8, 1}, "blocks");
  const int odd = me() == ranks() - 1;
  FAILS(XMP_BAD_ARGUMENT, "option 'mapping' is 'far'", xmp_nodes_mapped(&nodes, 1, (int64_t[]){0}, "far", NULL));
  FAILS(XMP_BAD_ARGUMENT, "'mapping' is null", xmp_nodes_mapped(&nodes, 1, (int64_t[]){0}, odd ? NULL : "row", NULL));
  FAILS(XMP_BAD_ARGUMENT, "'cells' is 0", xmp_nodes_mapped(&nodes, 1, (int64_t[]){0}, "row", (int64_t[]){odd ? 0 : 9}));
  if (ranks() > 1)
    FAILS(XMP_BAD_ARGUMENT, "each needs a place", xmp_nodes_mapped(&nodes, 1, (int64_t[]){1}, "row", NULL));
  CHECK(nodes == NULL);
}

/* Faces of half a mebibyte. */
static void large_faces(int acc) {
  const int64_t extents[2] = {ranks() + 1, 70000};
  sample s;
  memset(&s, 0, sizeof s);
  s.ndims = 2;
  OK(xmp_nodes(&s.nodes, 1, (int64_t[]){0}));
  OK(xmp_template(&s.t, 1, (xmp_range[]){{0, extents[0], 1}}));
  OK(xmp_distribute(s.t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, s.nodes));
  const xmp_array_spec spec = {
      .name = "large", .type = XMP_I64, .ndims = 2, .extents = extents, .axis = (int[]){0, XMP_COLLAPSED}};
  OK(xmp_array(&s.array, &spec, s.t));
  for (int d = 0; d < 2; ++d) s.extents[d] = extents[d];
  s.shadow[0] = (xmp_width){1, 1};
  OK(xmp_shadow(s.array, s.shadow));
  OK(xmp_allocate(s.array, NULL));
  if (acc) OK(xacc_allocate(s.array, NULL));
  fill_rule rule = whole_shadow(&s);
  rule.periodic[0] = 1;
  for (int round = 0; round < 2; ++round) {
    fill(&s, round);
    reflect(&s, &(xmp_reflect_options){.periodic = rule.periodic}, acc);
    check_shadow(&s, &rule, round);
  }
  VERIFY();
  free_sample(&s);
}

/* A stream of its own, or the default one in builds without CUDA. */
static void* new_stream(void) {
#ifdef TESTS_CUDA
  cudaStream_t stream = NULL;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  return stream;
#else
  return NULL;
#endif
}

void test_shadows(int acc) {
  chance from = {11};
  if (acc) {
    int gpu = -1;
    OK(xacc_use_gpu(&gpu));  // else the stream may be another GPU's
    CHECK(gpu >= 0);
    OK(xacc_set_queue(1, new_stream()));
  }
  for (int n = 0; n < cases(acc ? 6 : 12); ++n) random_shadows(&from, acc);
  large_faces(acc);
  if (acc) return;
  for (int n = 0; n < cases(3); ++n) shadows_together(&from);
}

/* ---- full shadows, where the extent is no multiple of the nodes ---- */

void test_full_shadows(void) {
  for (int n = 0; n < 2; ++n) {
    const int64_t extents[2] = {7 + n, 5};
    sample s;
    memset(&s, 0, sizeof s);
    OK(xmp_nodes(&s.nodes, 1, (int64_t[]){0}));
    OK(xmp_template(&s.t, 1, (xmp_range[]){{0, 9, 1}}));
    OK(xmp_distribute(s.t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, s.nodes));
    const xmp_array_spec spec = {.name = "full",
                                 .type = XMP_I64,
                                 .ndims = 2,
                                 .extents = extents,
                                 .axis = (int[]){0, XMP_COLLAPSED},
                                 .offset = (int64_t[]){1, 0}};
    OK(xmp_array(&s.array, &spec, s.t));
    OK(xmp_shadow(s.array, (xmp_width[]){XMP_FULL_SHADOW, {0, 0}}));
    OK(xmp_allocate(s.array, NULL));
    s.ndims = 2;
    for (int round = 0; round < 3; ++round) {
      xmp_view view;
      int wrong = 0;
      fill(&s, round);
      OK(xmp_reflect(1, &s.array, NULL));
      OK(xmp_get_view(s.array, &view));
      CHECK(view.extents[0] == extents[0]);
      for (int64_t i = 0; i < extents[0] && view.own[0] > 0; ++i)
        for (int64_t j = 0; j < extents[1]; ++j)
          wrong += ((int64_t*)view.data)[i * 5 + j] != value_of((int64_t[]){i, j}, 2, round);
      CHECK(wrong == 0);
    }
    FAILS(XMP_BAD_ARGUMENT, "full shadow", xmp_reduce_shadow(1, &s.array, NULL));
    VERIFY();
    free_sample(&s);
  }
}

/* ---- shadows that are added ---- */

enum { MOST_ELEMENTS = 216 };

static int64_t place_of(const sample* s, const int64_t* index) {
  int64_t place = 0;
  for (int d = 0; d < s->ndims; ++d) place = place * s->extents[d] + index[d];
  return place;
}

/* Other values in every place of every node's memory, but the same on nodes that have the same part. */
static int64_t shadow_value(const xmp_view* view, const int64_t* at, int ndims, int round) {
  int64_t value = round;
  for (int d = 0; d < ndims; ++d) value = value * 30 + view->first[d] + 2 * at[d] + 1;
  return value;
}

static void add_shadows(const sample* s, const fill_rule* rule, int acc) {
  const xmp_reflect_options options = {
      .width = rule->width, .periodic = rule->periodic, .orthogonal = rule->orthogonal};
  if (!acc) {
    OK(xmp_reduce_shadow(1, &s->array, &options));
    return;
  }
  OK(xacc_update_device(s->array));
  OK(xacc_reduce_shadow(1, &s->array, &options, XACC_SYNC));
  OK(xacc_update_self(s->array));
}

/* Every element gets what all shadows of it hold, and the shadows keep it. What they hold is summed by a reduction. */
static void check_added(const sample* s, const fill_rule* rule, int round, int acc) {
  int64_t sums[2 * MOST_ELEMENTS] = {0}; /* of shadows, and how many nodes own the element */
  xmp_view view;
  int64_t index[3];
  int outside, wrong = 0;
  OK(xmp_get_view(s->array, &view));
  int64_t* const data = (int64_t*)view.data;
  int64_t at[3] = {0};
  for (int64_t i = 0; i < view.bytes / 8; ++i) {
    data[i] = shadow_value(&view, at, s->ndims, round);
    if (stands_for(s, &view, rule, at, index, &outside)) {
      if (outside == 0)
        ++sums[MOST_ELEMENTS + place_of(s, index)];
      else
        sums[place_of(s, index)] += data[i];
    }
    for (int d = s->ndims - 1; d >= 0 && ++at[d] == view.extents[d]; --d) at[d] = 0;
  }
  add_shadows(s, rule, acc);
  OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){sums, 2 * MOST_ELEMENTS, XMP_I64}, NULL));
  memset(at, 0, sizeof at);
  for (int64_t i = 0; i < view.bytes / 8; ++i) {
    int64_t value = shadow_value(&view, at, s->ndims, round);
    if (stands_for(s, &view, rule, at, index, &outside) && outside == 0)
      value += sums[place_of(s, index)] / sums[MOST_ELEMENTS + place_of(s, index)];
    wrong += data[i] != value;
    for (int d = s->ndims - 1; d >= 0 && ++at[d] == view.extents[d]; --d) at[d] = 0;
  }
  CHECK(wrong == 0);
}

void test_reduce_shadow(int acc) {
  chance from = {12};
  for (int n = 0; n < cases(8); ++n) {
    const int ndims = draw(&from, 1, 3);
    int64_t extents[3];
    for (int d = 0; d < ndims; ++d) extents[d] = draw(&from, 1, ndims == 1 ? 30 : 6);
    sample s = make_sample(&from, ndims, extents, 0, 1);
    if (acc) OK(xacc_allocate(s.array, NULL));
    for (int k = 0; k < 3; ++k) {
      const fill_rule rule = k == 0 ? whole_shadow(&s) : random_rule(&from, &s);
      for (int round = 1; round < 3; ++round) check_added(&s, &rule, round, acc);
    }
    VERIFY();
    free_sample(&s);
  }
}
