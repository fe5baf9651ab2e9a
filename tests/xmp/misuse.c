/* What is refused, with which sentence, and that everything works afterwards. */
#include "check.h"

static xmp_desc_t p, t, array;

static void make(int format, int64_t below, int64_t above) {
  OK(xmp_template(&t, 1, (xmp_range[]){{0, 40, 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{format, 0, NULL}}, p));
  const xmp_array_spec spec = {.name = "u", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){40}};
  OK(xmp_array(&array, &spec, t));
  OK(xmp_shadow(array, (xmp_width[]){{below, above}}));
}

static void done(void) {
  OK(xmp_free(&array));
  OK(xmp_free(&t));
}

void test_misuse(void) {
  xmp_desc_t none = NULL, other = NULL;
  int mine = 0;
  OK(xmp_nodes(&p, 1, (int64_t[]){0}));
  FAILS(XMP_BAD_ARGUMENT, "there are", xmp_nodes(&other, 1, (int64_t[]){ranks() + 1}));
  FAILS(XMP_BAD_ARGUMENT, "'ndims' is 8", xmp_nodes(&other, 8, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1}));
  FAILS(XMP_BAD_ARGUMENT, "'nodes' is null", xmp_nodes(NULL, 1, (int64_t[]){1}));
  FAILS(XMP_BAD_ARGUMENT, "must lie within", xmp_nodes_of(&other, 1, (int64_t[]){0}, p, (xmp_range[]){{0, 99, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "empty", xmp_template(&other, 1, (xmp_range[]){{5, 5, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "is null; it must be a template", xmp_distribute(NULL, (xmp_distribution[]){{0}}, p));
  CHECK(other == NULL);

  make(XMP_BLOCK, 1, 2);
  FAILS(XMP_BAD_ARGUMENT, "distributed already", xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, p));
  FAILS(XMP_BAD_ARGUMENT, "has no memory", xmp_reflect(1, &array, NULL));
  OK(xmp_allocate(array, NULL));
  FAILS(XMP_BAD_ARGUMENT, "declare its shadow first", xmp_shadow(array, (xmp_width[]){{1, 1}}));
  FAILS(XMP_BAD_ARGUMENT, "width 2:2 goes beyond the shadow of array 'u' in dimension 0, which is 1:2",
        xmp_reflect(1, &array, &(xmp_reflect_options){.width = (xmp_width[]){{2, 2}}}));
  FAILS(XMP_BAD_ARGUMENT, "has no plan", xmp_reflect_do(1, &array));
  FAILS(XMP_BAD_ARGUMENT, "named twice", xmp_reflect(2, (xmp_desc_t[]){array, array}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'count' is 0", xmp_reflect(0, &array, NULL));
  FAILS(XMP_BAD_ARGUMENT, "is null; it must be an array", xmp_reflect(1, &none, NULL));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of an array", xmp_reflect(1, &t, NULL));
  if (ranks() > 1) FAILS(XMP_BAD_ARGUMENT, "path", xmp_reflect(1, &array, &(xmp_reflect_options){.path = "pigeon"}));
  /* A rank that is wrong by itself: all are told of it. */
  const int odd = me() == ranks() - 1;
  FAILS(XMP_BAD_ARGUMENT, "goes beyond the shadow",
        xmp_reflect(1, &array, &(xmp_reflect_options){.width = (xmp_width[]){{odd ? 9 : 1, 1}}}));
  if (ranks() > 1)
    FAILS(XMP_DISAGREEMENT, "width", xmp_reflect(1, &array, &(xmp_reflect_options){.width = (xmp_width[]){{odd, 1}}}));
  /* Different calls: both are named. */
  if (ranks() > 1)
    FAILS(XMP_DISAGREEMENT, "reflect", odd ? xmp_reflect_init(1, &array, NULL) : xmp_reduce_shadow(1, &array, NULL));
  /* Under way while its memory is replaced. */
  OK(xmp_reflect_async(1, &array, NULL, 4));
  FAILS(XMP_BAD_ARGUMENT, "async id 4", xmp_allocate(array, NULL));
  FAILS(XMP_BAD_ARGUMENT, "async id 4", xmp_free(&array));
  OK(xmp_wait_async(1, (int[]){4}));
  OK(xmp_reflect_init(1, &array, NULL));
  OK(xmp_reflect_do(1, &array));
  CHECK(strstr(xmp_reflect_explain(array), ranks() > 1 ? "u " : "") != NULL);
  const xmp_desc_t old = array;
  done();
  FAILS(XMP_BAD_ARGUMENT, "was freed", xmp_reflect_do(1, &old));

  make(XMP_CYCLIC, 0, 0);
  FAILS(XMP_BAD_ARGUMENT, "cyclic(1), which has no shadow", xmp_shadow(array, (xmp_width[]){{1, 0}}));
  OK(xmp_allocate(array, NULL));
  FAILS(XMP_BAD_ARGUMENT, "cyclic in dimension 0", xmp_reflect(1, &array, NULL));
  done();

  const xmp_array_spec far = {.name = "far", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){41}};
  const xmp_array_spec strange = {.name = "far", .type = 99, .ndims = 1, .extents = (int64_t[]){1}};
  make(XMP_BLOCK, 0, 0);
  FAILS(XMP_BAD_ARGUMENT, "array 'far': its dimension 0 has 41 elements", xmp_array(&other, &far, t));
  FAILS(XMP_BAD_ARGUMENT, "spec->type is 99", xmp_array(&other, &strange, t));
  const xmp_array_spec outside = {.name = "outside",
                                  .type = XMP_F64,
                                  .ndims = 1,
                                  .extents = (int64_t[]){3},
                                  .axis = (int[]){XMP_COLLAPSED},
                                  .fixed = (int64_t[]){40}};
  xmp_array_spec both = outside;
  both.axis = (int[]){0};
  both.fixed = (int64_t[]){4};
  FAILS(XMP_BAD_ARGUMENT, "spec->fixed is 40 for dimension 0", xmp_array(&other, &outside, t));
  FAILS(XMP_BAD_ARGUMENT, "is aligned with dimension 0 of the template, for which", xmp_array(&other, &both, t));
  FAILS(XMP_BAD_ARGUMENT, "block(",
        (xmp_template(&other, 1, (xmp_range[]){{0, 400, 1}}),
         xmp_distribute(other, (xmp_distribution[]){{XMP_BLOCK, 2, NULL}}, p)));
  OK(xmp_free(&other));
  FAILS(XMP_BAD_ARGUMENT, "the range is 30 to 50", xmp_task_begin(t, (xmp_range[]){{30, 51, 1}}, &mine));
  done();

  /* A template that is used before it is fixed. */
  xmp_loop loop;
  const xmp_array_spec early = {.name = "early", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){4}};
  OK(xmp_template(&t, 1, NULL));
  FAILS(XMP_BAD_ARGUMENT, "not distributed", xmp_array(&other, &early, t));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_GBLOCK, 0, NULL}}, p));
  FAILS(XMP_BAD_ARGUMENT, "not fixed; call xmp_template_fix", xmp_array(&other, &early, t));
  FAILS(XMP_BAD_ARGUMENT, "not fixed", xmp_loop_begin(&loop, t, 0, (xmp_range){0, 4, 1}));
  FAILS(XMP_BAD_ARGUMENT, "not fixed", xmp_task_begin(t, NULL, &mine));
  FAILS(XMP_BAD_ARGUMENT, "map of dimension 0 is still open",
        xmp_template_fix(t, (xmp_range[]){{0, 4, 1}}, (xmp_distribution[]){{XMP_GBLOCK, 0, NULL}}));
  OK(xmp_free(&t));

  /* Sections that do not fit, on one rank only: all are told. */
  make(XMP_BLOCK, 0, 0);
  OK(xmp_allocate(array, NULL));
  const xmp_range all = {0, 40, 1}, less = {0, 39, 1}, beyond = {0, 41, 1};
  FAILS(XMP_BAD_ARGUMENT, "the left section has 40 elements, the right one 39", xmp_gmove(array, &all, array, &less));
  FAILS(XMP_BAD_ARGUMENT, "of the left side", xmp_gmove(array, &beyond, array, &beyond));
  FAILS(XMP_BAD_ARGUMENT, "the right one 39", xmp_gmove(array, &all, array, odd ? &less : &all));
  if (ranks() > 1)
    FAILS(XMP_DISAGREEMENT, "right section", xmp_gmove(array, &less, array, odd ? &less : &(xmp_range){1, 40, 1}));
  /* Nothing is converted. */
  xmp_desc_t whole;
  const xmp_array_spec counts = {.name = "counts", .type = XMP_I64, .ndims = 1, .extents = (int64_t[]){40}};
  OK(xmp_array(&whole, &counts, t));
  FAILS(XMP_BAD_ARGUMENT, "has no memory", xmp_gmove(array, NULL, whole, NULL));
  OK(xmp_allocate(whole, NULL));
  FAILS(XMP_BAD_ARGUMENT, "the left side's elements are f64, the right side's i64",
        xmp_gmove(array, NULL, whole, NULL));
  OK(xmp_free(&whole));
  /* A factor without memory, and a product of vectors. */
  xmp_desc_t square[2];
  const xmp_array_spec plane = {
      .name = "square", .type = XMP_F64, .ndims = 2, .extents = (int64_t[]){6, 6}, .axis = (int[]){0, XMP_COLLAPSED}};
  for (int k = 0; k < 2; ++k) OK(xmp_array(&square[k], &plane, t));
  OK(xmp_allocate(square[1], NULL));
  FAILS(XMP_BAD_ARGUMENT, "has no memory", xmp_matmul(square[0], square[1], square[1]));
  FAILS(XMP_BAD_ARGUMENT, "it must have 2", xmp_matmul(square[1], square[1], array));
  FAILS(XMP_BAD_ARGUMENT, "it must have 2", xmp_transpose(square[1], array, 0));
  for (int k = 0; k < 2; ++k) OK(xmp_free(&square[k]));
  done();

  int32_t value = 1;
  double real = 1;
  /* Each rank another number of elements, or another root. */
  if (ranks() > 1) {
    int32_t many[2] = {1, 2};
    FAILS(XMP_DISAGREEMENT, "count", xmp_reduction(XMP_SUM, 1, &(xmp_variable){many, 1 + odd, XMP_I32}, NULL));
    FAILS(XMP_DISAGREEMENT, "root", xmp_bcast(1, &(xmp_variable){many, 1, XMP_I32}, odd, NULL));
  }
  FAILS(XMP_BAD_ARGUMENT, "'op' is 99", xmp_reduction(99, 1, &(xmp_variable){&value, 1, XMP_I32}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "has no meaning", xmp_reduction(XMP_BAND, 1, &(xmp_variable){&real, 1, XMP_F64}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "is null", xmp_reduction(XMP_SUM, 1, &(xmp_variable){NULL, 1, XMP_F64}, NULL));
  FAILS(XMP_BAD_ARGUMENT, "'from' is 77", xmp_bcast(1, &(xmp_variable){&value, 1, XMP_I32}, 77, NULL));
  FAILS(XMP_BAD_ARGUMENT, "XMP_FIRSTMAX",
        xmp_reduction_loc(XMP_SUM, (xmp_variable){&value, 1, XMP_I32}, 0, NULL, NULL));
  OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){&value, 1, XMP_I32}, NULL));
  CHECK(value == ranks());
  OK(xmp_free(&p));
  FAILS(XMP_BAD_ARGUMENT, "is null", xmp_free(&p));
  FAILS(XMP_BAD_ARGUMENT, "called before", xmp_init(0, NULL));
}
