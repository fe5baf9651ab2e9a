/* Arguments that no call can do anything with: each is refused with a sentence, on the node that gives it, and changes
 * nothing. */
#include "check.h"

static xmp_desc_t p, t, u;
static const xmp_range far_away = {INT64_MIN, INT64_MAX, 3};

static void nodes_and_templates(void) {
  xmp_desc_t other = NULL;
  FAILS(XMP_BAD_ARGUMENT, "'extents' is null", xmp_nodes(&other, 1, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'ndims' is 0", xmp_nodes(&other, 0, (int64_t[]){1}));
  FAILS(XMP_BAD_ARGUMENT, "'extents' is -2", xmp_nodes(&other, 1, (int64_t[]){-2}));
  FAILS(XMP_BAD_ARGUMENT, "there are", xmp_nodes(&other, 2, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32}));
  FAILS(XMP_BAD_ARGUMENT, "not be empty", xmp_nodes_of(&other, 1, (int64_t[]){0}, p, (xmp_range[]){{0, 0, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "step -1", xmp_nodes_of(&other, 1, (int64_t[]){0}, p, (xmp_range[]){{0, 1, -1}}));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of nodes", xmp_nodes_of(&other, 1, (int64_t[]){0}, u, NULL));
  FAILS(XMP_BAD_ARGUMENT, "step 2", xmp_template(&other, 1, (xmp_range[]){{0, 9, 2}}));
  FAILS(XMP_BAD_ARGUMENT, "too far from 0", xmp_template(&other, 1, (xmp_range[]){{INT64_MIN, INT64_MAX, 1}}));
  OK(xmp_template(&other, 1, (xmp_range[]){{0, 40, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "'distributions' is null", xmp_distribute(other, NULL, p));
  FAILS(XMP_BAD_ARGUMENT, "is 9, which is none", xmp_distribute(other, (xmp_distribution[]){{9, 0, NULL}}, p));
  FAILS(XMP_BAD_ARGUMENT, "-1 indices", xmp_distribute(other, (xmp_distribution[]){{XMP_CYCLIC, -1, NULL}}, p));
  FAILS(XMP_BAD_ARGUMENT, "0 distributed dimensions", xmp_distribute(other, (xmp_distribution[]){{0, 0, NULL}}, p));
  int64_t map[16] = {-1, 41};
  FAILS(XMP_BAD_ARGUMENT, "is -1", xmp_distribute(other, (xmp_distribution[]){{XMP_GBLOCK, 0, map}}, p));
  map[0] = map[1] = 3;
  FAILS(XMP_BAD_ARGUMENT, "adds up to", xmp_distribute(other, (xmp_distribution[]){{XMP_GBLOCK, 0, map}}, p));
  OK(xmp_free(&other));
}

static void arrays(void) {
  xmp_desc_t other = NULL;
  const xmp_array_spec good = {.name = "a", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){40}};
  xmp_array_spec spec = good;
  FAILS(XMP_BAD_ARGUMENT, "'spec' is null", xmp_array(&other, NULL, t));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of a template", xmp_array(&other, &good, p));
  spec.extents = (int64_t[]){0};
  FAILS(XMP_BAD_ARGUMENT, "its extent is 0", xmp_array(&other, &spec, t));
  spec.extents = (int64_t[]){INT64_MAX};
  FAILS(XMP_BAD_ARGUMENT, "more bytes on a node than 64 bits can count", xmp_array(&other, &spec, NULL));
  spec = good;
  spec.axis = (int[]){9};
  FAILS(XMP_BAD_ARGUMENT, "dimension 9 of a template that has 1", xmp_array(&other, &spec, t));
  spec =
      (xmp_array_spec){.name = "a", .type = XMP_F64, .ndims = 2, .extents = (int64_t[]){40, 40}, .axis = (int[]){0, 0}};
  FAILS(XMP_BAD_ARGUMENT, "are both aligned with dimension 0", xmp_array(&other, &spec, t));
  spec = good;
  spec.type = XMP_BYTES;
  FAILS(XMP_BAD_ARGUMENT, "have 0 bytes", xmp_array(&other, &spec, t));
  spec = good;
  spec.offset = (int64_t[]){INT64_MAX};
  FAILS(XMP_BAD_ARGUMENT, "from template index", xmp_array(&other, &spec, t));
  spec.offset = (int64_t[]){-1};
  FAILS(XMP_BAD_ARGUMENT, "from template index -1", xmp_array(&other, &spec, t));
  OK(xmp_array(&other, &good, t));
  FAILS(XMP_BAD_ARGUMENT, "'widths' is null", xmp_shadow(other, NULL));
  FAILS(XMP_BAD_ARGUMENT, "is -2:0", xmp_shadow(other, (xmp_width[]){{-2, 0}}));
  FAILS(XMP_BAD_ARGUMENT, "a width must be 0 to", xmp_shadow(other, (xmp_width[]){{INT64_MAX, INT64_MAX}}));
  CHECK(xmp_malloc(other, -5) == NULL && strstr(xmp_last_error(), "its extent is -5") != NULL);
  CHECK(xmp_malloc(other, 41) == NULL && strstr(xmp_last_error(), "has 41 elements") != NULL);
  CHECK(xmp_local_index(other, 1, 0) == -1 && xmp_local_index(other, 0, INT64_MAX) == -1);
  CHECK(xmp_local_index(other, 0, INT64_MIN) == -1 && xmp_global_index(other, 0, INT64_MAX) == -1);
  /* Each node another extent: all are told by what communicates. */
  (void)xmp_malloc(other, me() == ranks() - 1 ? 39 : 40);
  if (ranks() > 1) FAILS(XMP_DISAGREEMENT, "'extents' differs", xmp_reflect(1, &other, NULL));
  (void)xmp_malloc(other, 40);
  OK(xmp_reflect(1, &other, NULL));
  OK(xmp_free(&other));
  other = (xmp_desc_t)0x7fffffffffffffff;
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of an array", xmp_reflect(1, &other, NULL));
}

static void work(void) {
  xmp_loop loop;
  xmp_nests nests;
  int mine = 0;
  FAILS(XMP_BAD_ARGUMENT, "'loop' is null", xmp_loop_begin(NULL, t, 0, (xmp_range){0, 4, 1}));
  FAILS(XMP_BAD_ARGUMENT, "'dim' is 3", xmp_loop_begin(&loop, t, 3, (xmp_range){0, 4, 1}));
  CHECK(xmp_loop_next(&loop) == 0);
  FAILS(XMP_BAD_ARGUMENT, "step -1", xmp_loop_begin(&loop, t, 0, (xmp_range){0, 4, -1}));
  FAILS(XMP_BAD_ARGUMENT, "too far from 0", xmp_loop_begin(&loop, t, 0, far_away));
  FAILS(XMP_BAD_ARGUMENT, "'edge' is 7", xmp_loop_nests(t, NULL, 7, NULL, &nests));
  FAILS(XMP_BAD_ARGUMENT, "the width is", xmp_loop_nests(t, NULL, XMP_EXPAND, (xmp_width[]){{INT64_MIN, 0}}, &nests));
  FAILS(XMP_BAD_ARGUMENT, "nodes or a template", xmp_task_begin(NULL, NULL, &mine));
  FAILS(XMP_BAD_ARGUMENT, "'mine' is null", xmp_task_begin(p, NULL, NULL));
  FAILS(XMP_BAD_ARGUMENT, "the section is 0 to 98", xmp_task_begin(p, (xmp_range[]){{0, 99, 1}}, &mine));
}

static void communication(void) {
  int32_t value = 1;
  const xmp_variable v = {&value, 1, XMP_I32};
  FAILS(XMP_BAD_ARGUMENT, "'arrays' is null", xmp_reflect(1, NULL, NULL));
  FAILS(XMP_BAD_ARGUMENT, "width -1:0 goes beyond",
        xmp_reflect(1, &u, &(xmp_reflect_options){.width = (xmp_width[]){{-1, 0}}}));
  /* Started twice. */
  OK(xmp_reflect_async(1, &u, NULL, 1));
  FAILS(XMP_BAD_ARGUMENT, "still active", xmp_reflect_async(1, &u, NULL, 2));
  OK(xmp_wait_async(2, (int[]){1, 2}));
  FAILS(XMP_BAD_ARGUMENT, "'ids' is null", xmp_wait_async(1, NULL));
  CHECK(xmp_reflect_explain(u) == NULL && strstr(xmp_last_error(), "has no plan") != NULL);
  FAILS(XMP_BAD_ARGUMENT, "too far from 0", xmp_gmove(u, &far_away, u, NULL));
  FAILS(XMP_BAD_ARGUMENT, "of the left side", xmp_gmove(u, (xmp_range[]){{-1, 39, 1}}, u, (xmp_range[]){{0, 40, 1}}));
  OK(xmp_gmove(u, (xmp_range[]){{39, 0, 1}}, u, (xmp_range[]){{7, 2, 1}})); /* both are empty */
  FAILS(XMP_BAD_ARGUMENT, "'count' is -1", xmp_reduction(XMP_SUM, -1, &v, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'variables' is null", xmp_reduction(XMP_SUM, 1, NULL, NULL));
  FAILS(XMP_BAD_ARGUMENT, "-1 elements", xmp_reduction(XMP_SUM, 1, &(xmp_variable){&value, -1, XMP_I32}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "is 0, which is none",
        xmp_reduction(XMP_SUM, 1, &(xmp_variable){&value, 1, XMP_BYTES}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of nodes", xmp_reduction(XMP_SUM, 1, &v, u));
  FAILS(XMP_BAD_ARGUMENT, "operator max has no meaning",
        xmp_reduction(XMP_MAX, 1, &(xmp_variable){&value, 1, XMP_C64}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'locations' is -1", xmp_reduction_loc(XMP_FIRSTMAX, v, -1, NULL, NULL));
  FAILS(XMP_BAD_ARGUMENT, "location 0 has 2 elements",
        xmp_reduction_loc(XMP_FIRSTMAX, v, 1, &(xmp_variable){&value, 2, XMP_I32}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'from' is -1", xmp_bcast(1, &v, -1, NULL));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of nodes", xmp_barrier(t));
  FAILS(XMP_BAD_ARGUMENT, "'number' is -1", xmp_post(p, -1, 0));
  FAILS(XMP_BAD_ARGUMENT, "'tag' is -7", xmp_wait(p, 0, -7));
  FAILS(XMP_BAD_ARGUMENT, "'c' is null", xmp_matmul(NULL, u, u));
  FAILS(XMP_BAD_ARGUMENT, "'report' is null", xmp_verify(NULL));
  CHECK(xmp_node_number(p, NULL) == -1 && xmp_node_number(p, (int[]){-1}) == -1);
  int64_t sum = 1;
  OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){&sum, 1, XMP_I64}, NULL));
  CHECK(sum == ranks());
}

/* Without a GPU every call of xacc.h says why, on every node. */
static void without_gpus(void) {
  if (xacc_barrier(NULL) != XMP_NOT_POSSIBLE) return;
  const xmp_variable v = {&(int32_t){1}, 1, XMP_I32};
  int status[] = {xacc_use_gpu(NULL),
                  xacc_set_queue(0, NULL),
                  xacc_allocate(u, NULL),
                  xacc_bind(u, NULL),
                  xacc_update_device(u),
                  xacc_update_self(u),
                  xacc_reflect(1, &u, NULL, XACC_SYNC),
                  xacc_reflect_async(1, &u, NULL, 1),
                  xacc_reflect_init(1, &u, NULL),
                  xacc_reduce_shadow(1, &u, NULL, XACC_SYNC),
                  xacc_gmove(u, NULL, u, NULL, XACC_SYNC),
                  xacc_gmove_async(u, NULL, u, NULL, 1),
                  xacc_transpose(u, u, XACC_SYNC),
                  xacc_matmul(u, u, u, XACC_SYNC),
                  xacc_reduction(XMP_SUM, 1, &v, NULL, XACC_SYNC),
                  xacc_reduction_async(XMP_SUM, 1, &v, NULL, 1),
                  xacc_reduction_loc(XMP_FIRSTMAX, v, 0, NULL, NULL, XACC_SYNC),
                  xacc_bcast(1, &v, 0, NULL, XACC_SYNC),
                  xacc_bcast_async(1, &v, 0, NULL, 1)};
  for (size_t i = 0; i < sizeof status / sizeof status[0]; ++i) CHECK(status[i] == XMP_NOT_POSSIBLE);
  FAILS(XMP_NOT_POSSIBLE, "no GPU can be used", xacc_reflect(1, &u, NULL, 0));
  FAILS(XMP_BAD_ARGUMENT, "call xacc_reflect_init first", xacc_reflect_do(1, &u, XACC_SYNC));
}

void test_refused(void) {
  OK(xmp_nodes(&p, 1, (int64_t[]){0}));
  OK(xmp_template(&t, 1, (xmp_range[]){{0, 40, 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, p));
  const xmp_array_spec spec = {.name = "u", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){40}};
  OK(xmp_array(&u, &spec, t));
  OK(xmp_shadow(u, (xmp_width[]){{1, 1}}));
  OK(xmp_allocate(u, NULL));
  nodes_and_templates();
  arrays();
  work();
  communication();
  without_gpus();
  VERIFY();
  OK(xmp_free(&u));
  OK(xmp_free(&t));
  OK(xmp_free(&p));
}
