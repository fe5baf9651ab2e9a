/* Tasks: subsets of nodes communicate by themselves, in any order and number, without the others. */
#include "check.h"

/* The nodes of a task and all that happens on them: reflects, reductions, moves, tasks within. */
static void work_in(xmp_desc_t half, int first, int count, int rounds) {
  const int64_t extents[1] = {count * 3 + 1};
  xmp_desc_t t, array;
  OK(xmp_template(&t, 1, (xmp_range[]){{0, extents[0], 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, half));
  const xmp_array_spec spec = {.name = "part", .type = XMP_I64, .ndims = 1, .extents = extents};
  OK(xmp_array(&array, &spec, t));
  OK(xmp_shadow(array, (xmp_width[]){{1, 1}}));
  OK(xmp_allocate(array, NULL));
  CHECK(xmp_num_nodes() == count);
  CHECK(xmpc_node_num() == me() - first);
  for (int round = 0; round < rounds; ++round) {
    xmp_view view;
    OK(xmp_get_view(array, &view));
    int64_t* const data = (int64_t*)view.data;
    for (int64_t i = 0; i < view.own[0]; ++i) data[i + 1] = (view.first[0] + i) * 10 + round;
    OK(xmp_reflect(1, &array, &(xmp_reflect_options){.periodic = (int[]){1}}));
    if (view.own[0] > 0) {
      CHECK(data[0] == (view.first[0] + extents[0] - 1) % extents[0] * 10 + round);
      CHECK(data[view.own[0] + 1] == (view.first[0] + view.own[0]) % extents[0] * 10 + round);
    }
    int64_t sum = me();
    OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){&sum, 1, XMP_I64}, NULL));
    CHECK(sum == (int64_t)count * first + (int64_t)count * (count - 1) / 2);
    OK(xmp_barrier(NULL));
  }
  /* A task within: the first node of these. */
  int mine = 0;
  OK(xmp_task_begin(half, (xmp_range[]){{0, 1, 1}}, &mine));
  CHECK(mine == (me() == first));
  if (mine) {
    int64_t alone = 4;
    CHECK(xmp_num_nodes() == 1);
    if (count > 1) FAILS(XMP_BAD_ARGUMENT, "not one of the executing nodes", xmp_gmove(array, NULL, array, NULL));
    OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){&alone, 1, XMP_I64}, NULL));
    CHECK(alone == 4);
    OK(xmp_task_end());
  }
  OK(xmp_free(&array));
  OK(xmp_free(&t));
}

/* All nodes declare arrays of which each lies on some nodes only, and move one to the other. */
static void arrays_of_others(xmp_desc_t low, xmp_desc_t high) {
  const int64_t extents[1] = {23};
  xmp_desc_t t[2], array[2];
  for (int h = 0; h < 2; ++h) {
    OK(xmp_template(&t[h], 1, (xmp_range[]){{0, 23, 1}}));
    OK(xmp_distribute(t[h], (xmp_distribution[]){{h ? XMP_CYCLIC : XMP_BLOCK, 0, NULL}}, h ? high : low));
    const xmp_array_spec spec = {.name = h ? "high" : "low", .type = XMP_I64, .ndims = 1, .extents = extents};
    OK(xmp_array(&array[h], &spec, t[h]));
    if (!h) OK(xmp_shadow(array[0], (xmp_width[]){{1, 1}}));
    OK(xmp_allocate(array[h], NULL));
  }
  for (int round = 0; round < 2; ++round) {
    xmp_view view;
    OK(xmp_get_view(array[0], &view));
    int64_t* data = (int64_t*)view.data;
    for (int64_t i = 0; i < view.own[0]; ++i) data[i + 1] = (view.first[0] + i) * 3 + round;
    OK(xmp_reflect(1, &array[0], NULL)); /* nothing to do on nodes of the other half */
    if (view.own[0] > 0 && view.first[0] > 0) CHECK(data[0] == (view.first[0] - 1) * 3 + round);
    OK(xmp_gmove(array[1], (xmp_range[]){{0, 22, 2}}, array[0], (xmp_range[]){{1, 12, 1}}));
    OK(xmp_get_view(array[1], &view));
    data = (int64_t*)view.data;
    for (int64_t k = 0; k < view.own[0]; ++k) {
      const int64_t i = xmp_global_index(array[1], 0, k);
      if (i < 22 && i % 2 == 0) CHECK(data[k] == (1 + i / 2) * 3 + round);
    }
  }
  for (int h = 0; h < 2; ++h) {
    OK(xmp_free(&array[h]));
    OK(xmp_free(&t[h]));
  }
}

/* An array that all nodes declare, over nodes that may be some of them. */
static xmp_desc_t simple_array(xmp_desc_t nodes, xmp_desc_t* t, int64_t extent) {
  xmp_desc_t array;
  OK(xmp_template(t, 1, (xmp_range[]){{0, extent, 1}}));
  OK(xmp_distribute(*t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, nodes));
  const xmp_array_spec spec = {.name = "simple", .type = XMP_I64, .ndims = 1, .extents = &extent};
  OK(xmp_array(&array, &spec, *t));
  OK(xmp_shadow(array, (xmp_width[]){{1, 1}}));
  OK(xmp_allocate(array, NULL));
  return array;
}

/* Both arrays get their shadows, whose values are right. */
static void reflect_both(const xmp_desc_t arrays[2], int64_t extent, int round) {
  for (int k = 0; k < 2; ++k) {
    xmp_view view;
    OK(xmp_get_view(arrays[k], &view));
    for (int64_t i = 0; i < view.own[0]; ++i) ((int64_t*)view.data)[i + 1] = (view.first[0] + i) * 7 + round + k;
  }
  OK(xmp_reflect(2, arrays, NULL));
  for (int k = 0; k < 2; ++k) {
    xmp_view view;
    OK(xmp_get_view(arrays[k], &view));
    const int64_t* const data = (const int64_t*)view.data;
    const int64_t end = view.first[0] + view.own[0];
    if (view.own[0] > 0 && view.first[0] > 0) CHECK(data[0] == (view.first[0] - 1) * 7 + round + k);
    if (view.own[0] > 0 && end < extent) CHECK(data[view.own[0] + 1] == end * 7 + round + k);
  }
}

/* What some nodes prepare, or re-allocate, in a task of theirs changes nothing of what they share with others. */
static void plans_of_tasks(xmp_desc_t all, xmp_desc_t low) {
  const int64_t extent = ranks() * 3;
  xmp_desc_t t[3], arrays[2] = {simple_array(low, &t[0], extent), simple_array(all, &t[1], extent)};
  int mine = 0;
  reflect_both(arrays, extent, 1);
  OK(xmp_task_begin(low, NULL, &mine));
  if (mine) {
    OK(xmp_allocate(arrays[0], NULL)); /* only its nodes have it */
    OK(xmp_task_end());
  }
  reflect_both(arrays, extent, 2);
  /* More plans of one node than are kept. */
  OK(xmp_task_begin(all, (xmp_range[]){{0, 1, 1}}, &mine));
  if (mine) {
    xmp_desc_t alone;
    OK(xmp_nodes_of(&alone, 1, (int64_t[]){1}, NULL, NULL));
    xmp_desc_t other = simple_array(alone, &t[2], 600);
    for (int64_t i = 0; i < 270; ++i)
      OK(xmp_gmove(other, (xmp_range[]){{0, 2, 1}}, other, (xmp_range[]){{300 + i, 302 + i, 1}}));
    OK(xmp_free(&other));
    OK(xmp_free(&t[2]));
    OK(xmp_free(&alone));
    OK(xmp_task_end());
  }
  reflect_both(arrays, extent, 3);
  VERIFY();
  for (int k = 0; k < 2; ++k) {
    OK(xmp_free(&arrays[k]));
    OK(xmp_free(&t[k]));
  }
}

void test_tasks(void) {
  const int n = ranks(), low = (n + 1) / 2;
  xmp_desc_t all, halves[2];
  int mine = 0;
  OK(xmp_nodes(&all, 1, (int64_t[]){0}));
  OK(xmp_nodes_of(&halves[0], 1, (int64_t[]){0}, all, (xmp_range[]){{0, low, 1}}));
  if (n > 1) OK(xmp_nodes_of(&halves[1], 1, (int64_t[]){n - low}, all, (xmp_range[]){{low, n, 1}}));
  for (int h = 0; h < (n > 1 ? 2 : 1); ++h) {
    /* The halves do different numbers of things: no barrier of all stands between. */
    OK(xmp_task_begin(halves[h], NULL, &mine));
    CHECK(mine == ((me() >= low) == h));
    if (mine) {
      work_in(halves[h], h ? low : 0, h ? n - low : low, 2 + h);
      OK(xmp_task_end());
    }
  }
  plans_of_tasks(all, halves[0]);
  /* What a set does that a node is not in concerns it not. */
  int64_t value = 1;
  OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){&value, 1, XMP_I64}, halves[0]));
  CHECK(value == (me() < low ? low : 1));
  OK(xmp_barrier(halves[0]));

  if (n > 1) arrays_of_others(halves[0], halves[1]);

  /* The owners of a section of a template; every other node of the set. */
  xmp_desc_t t, odd;
  OK(xmp_template(&t, 1, (xmp_range[]){{0, 2 * n, 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 2, NULL}}, all));
  OK(xmp_task_begin(t, (xmp_range[]){{2 * n - 1, 2 * n, 1}}, &mine));
  CHECK(mine == (me() == n - 1));
  if (mine) OK(xmp_task_end());
  OK(xmp_nodes_of(&odd, 1, (int64_t[]){0}, all, (xmp_range[]){{0, n, 2}}));
  OK(xmp_task_begin(odd, NULL, &mine));
  CHECK(mine == (me() % 2 == 0));
  if (mine) {
    xmp_desc_t here;
    int size = 0;
    OK(xmp_nodes_of(&here, 1, (int64_t[]){0}, NULL, NULL)); /* = * */
    OK(xmp_nodes_size(here, 1, &size));
    CHECK(size == (n + 1) / 2);
    if (n > 1) FAILS(XMP_BAD_ARGUMENT, "not one of the nodes that execute it", xmp_task_begin(all, NULL, &mine));
    OK(xmp_free(&here));
    OK(xmp_task_end());
  }
  FAILS(XMP_BAD_ARGUMENT, "no task to end", xmp_task_end());
  FAILS(XMP_BAD_ARGUMENT, "no node executes the task", xmp_task_begin(t, (xmp_range[]){{0, 0, 1}}, &mine));
  VERIFY();
  OK(xmp_free(&odd));
  OK(xmp_free(&t));
  OK(xmp_free(&halves[0]));
  if (n > 1) OK(xmp_free(&halves[1]));
  OK(xmp_free(&all));
}
