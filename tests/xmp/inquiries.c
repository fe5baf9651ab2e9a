/* The language's inquiry functions, and the iterations of loops. */
#include "check.h"

void test_inquiries(void) {
  const int n = ranks();
  xmp_desc_t p, t, array, found;
  int answer = 0, map[16], local[3];
  int64_t sizes[16];
  CHECK(xmp_num_nodes() == n && xmp_all_num_nodes() == n);
  CHECK(xmp_node_num() == me() + 1 && xmp_all_node_num() == me() + 1 && xmpc_node_num() == me());
  const double now = xmp_wtime();
  CHECK(xmp_wtime() >= now && xmp_wtick() > 0);

  OK(xmp_nodes(&p, 2, (int64_t[]){0, 1}));
  OK(xmp_nodes_ndims(p, &answer));
  CHECK(answer == 2);
  OK(xmp_nodes_size(p, 1, &answer));
  CHECK(answer == n);
  OK(xmp_nodes_index(p, 1, &answer));
  CHECK(answer == me() + 1);
  OK(xmp_nodes_attr(p, &answer));
  CHECK(answer == XMP_ENTIRE_NODES);
  CHECK(xmp_node_number(p, (int[]){n - 1, 0}) == n - 1);
  CHECK(xmp_node_number(p, (int[]){n, 0}) == -1);

  for (int i = 0; i < n; ++i) sizes[i] = i == 0 ? 9 : i == 1 ? 0 : 1;
  const int64_t last = 9 + (n > 2 ? n - 2 : 0);
  OK(xmp_template(&t, 3, (xmp_range[]){{-1, last - 1, 1}, {1, 7, 1}, {0, 4, 1}}));
  OK(xmp_template_fixed(t, &answer));
  CHECK(answer == 0);
  OK(xmp_distribute(
      t, (xmp_distribution[]){{XMP_GBLOCK, 0, sizes}, {XMP_NOT_DISTRIBUTED, 0, NULL}, {XMP_CYCLIC, 2, NULL}}, p));
  OK(xmp_template_fixed(t, &answer));
  CHECK(answer == 1);
  OK(xmp_template_ndims(t, &answer));
  CHECK(answer == 3);
  OK(xmp_template_lbound(t, 1, &answer));
  CHECK(answer == -1);
  OK(xmp_template_ubound(t, 2, &answer));
  CHECK(answer == 6);
  OK(xmp_dist_format(t, 1, &answer));
  CHECK(answer == XMP_GBLOCK);
  OK(xmp_dist_format(t, 2, &answer));
  CHECK(answer == XMP_NOT_DISTRIBUTED);
  OK(xmp_dist_blocksize(t, 3, &answer));
  CHECK(answer == 2);
  OK(xmp_dist_gblockmap(t, 1, map));
  for (int i = 0; i < n; ++i) CHECK(map[i] == sizes[i]);
  OK(xmp_dist_axis(t, 3, &answer));
  CHECK(answer == 2);
  OK(xmp_dist_axis(t, 2, &answer));
  CHECK(answer == XMP_UNDEFINED);
  OK(xmp_dist_nodes(t, &found));
  CHECK(found == p);

  const xmp_array_spec spec = {.name = "q",
                               .type = XMP_F32,
                               .ndims = 2,
                               .extents = (int64_t[]){last, 5},
                               .axis = (int[]){0, XMP_COLLAPSED},
                               .offset = (int64_t[]){-1, 0}};
  OK(xmp_array(&array, &spec, t));
  OK(xmp_shadow(array, (xmp_width[]){{1, 2}, {0, 0}}));
  OK(xmp_allocate(array, NULL));
  OK(xmp_array_ndims(array, &answer));
  CHECK(answer == 2);
  OK(xmp_align_axis(array, 1, &answer));
  CHECK(answer == 1);
  OK(xmp_align_axis(array, 2, &answer));
  CHECK(answer == XMP_UNDEFINED);
  OK(xmp_align_offset(array, 1, &answer));
  CHECK(answer == -1);
  OK(xmp_align_replicated(array, 3, &answer));
  CHECK(answer == 1);
  OK(xmp_align_replicated(array, 1, &answer));
  CHECK(answer == 0);
  OK(xmp_align_template(array, &found));
  CHECK(found == t);
  OK(xmp_array_lshadow(array, 1, &answer));
  CHECK(answer == 1);
  OK(xmp_array_ushadow(array, 1, &answer));
  CHECK(answer == 2);
  OK(xmp_array_lbound(array, 1, &answer));
  CHECK(answer == 0);
  OK(xmp_array_ubound(array, 1, &answer));
  CHECK(answer == last - 1);
  OK(xmp_array_gsize(array, 2, &answer));
  CHECK(answer == 5);
  OK(xmp_array_lsize(array, 1, &answer));
  CHECK(answer == sizes[me()] + 3);
  OK(xmp_array_lead_dim(array, local));
  CHECK(local[0] == sizes[me()] + 3 && local[1] == 5);
  void* address = NULL;
  xmp_view view;
  OK(xmp_array_laddr(array, &address));
  OK(xmp_get_view(array, &view));
  CHECK(address == view.data && address != NULL);
  OK(xmp_array_owner(array, (int[]){8, 4}, &answer));
  CHECK(answer == 1);
  if (n > 2) {
    OK(xmp_array_owner(array, (int[]){9, 0}, &answer));
    CHECK(answer == 3);
  }
  if (me() == 0) {
    OK(xmp_array_gtol(array, (int[]){8, 3}, local));
    CHECK(local[0] == 9 && local[1] == 3);
  } else {
    FAILS(XMP_BAD_ARGUMENT, "not in the memory of this node", xmp_array_gtol(array, (int[]){0, 0}, local));
  }
  FAILS(XMP_BAD_ARGUMENT, "'dim' is 0", xmp_array_lsize(array, 0, &answer));
  FAILS(XMP_BAD_ARGUMENT, "'dim' is 3", xmp_array_lsize(array, 3, &answer));
  FAILS(XMP_BAD_ARGUMENT, "no descriptor of nodes", xmp_nodes_ndims(array, &answer));
  OK(xmp_free(&array));
  OK(xmp_free(&t));

  /* Fixed later: the range, and the map of gblock. */
  OK(xmp_template(&t, 1, NULL));
  OK(xmp_free(&p));
  OK(xmp_nodes(&p, 1, (int64_t[]){0}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_GBLOCK, 0, NULL}}, p));
  FAILS(XMP_BAD_ARGUMENT, "is not fixed", xmp_array(&array, &spec, t));
  FAILS(XMP_BAD_ARGUMENT, "ranges are still open", xmp_template_fix(t, NULL, NULL));
  OK(xmp_template_fix(t, (xmp_range[]){{0, last, 1}}, (xmp_distribution[]){{XMP_GBLOCK, 0, sizes}}));
  FAILS(XMP_BAD_ARGUMENT, "fixed already", xmp_template_fix(t, (xmp_range[]){{0, last, 1}}, NULL));
  OK(xmp_template_ubound(t, 1, &answer));
  CHECK(answer == last - 1);
  OK(xmp_free(&t));
  OK(xmp_free(&p));
}

/* Iterations of all nodes together: each one once, whatever the distribution. */
void test_loops(void) {
  const int n = ranks();
  xmp_desc_t p;
  OK(xmp_nodes(&p, 1, (int64_t[]){0}));
  for (int kind = 0; kind < 5; ++kind) {
    xmp_desc_t t;
    int32_t seen[50] = {0};
    const xmp_distribution distributions[5] = {{XMP_BLOCK, 0, NULL},
                                               {XMP_BLOCK, 50, NULL},
                                               {XMP_CYCLIC, 0, NULL},
                                               {XMP_CYCLIC, 3, NULL},
                                               {XMP_CYCLIC, 60, NULL}};
    OK(xmp_template(&t, 1, (xmp_range[]){{0, 50, 1}}));
    OK(xmp_distribute(t, &distributions[kind], p));
    xmp_loop loop;
    OK(xmp_loop_begin(&loop, t, 0, (xmp_range){3, 47, 4}));
    while (xmp_loop_next(&loop))
      for (int64_t i = loop.first; i < loop.end; i += loop.step) ++seen[i];
    OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){seen, 50, XMP_I32}, NULL));
    for (int i = 0; i < 50; ++i) CHECK(seen[i] == (i >= 3 && i < 47 && (i - 3) % 4 == 0));
    if (kind == 0) {
      xmp_nests inside, edges;
      int64_t counted[1] = {0};
      OK(xmp_loop_nests(t, NULL, XMP_EXPAND, (xmp_width[]){{-1, -1}}, &inside));
      OK(xmp_loop_nests(t, NULL, XMP_MARGIN, (xmp_width[]){{-1, -1}}, &edges));
      for (int k = 0; k < inside.count; ++k) counted[0] += inside.ranges[k][0].end - inside.ranges[k][0].first;
      for (int k = 0; k < edges.count; ++k) counted[0] += edges.ranges[k][0].end - edges.ranges[k][0].first;
      OK(xmp_reduction(XMP_SUM, 1, &(xmp_variable){counted, 1, XMP_I64}, NULL));
      CHECK(counted[0] == 50);
    }
    if (kind == 2) {
      xmp_nests nests;
      FAILS(XMP_BAD_ARGUMENT, "cyclic", xmp_loop_nests(t, NULL, XMP_EXPAND, (xmp_width[]){{1, 1}}, &nests));
    }
    OK(xmp_free(&t));
  }
  OK(xmp_free(&p));
  CHECK(n > 0);
}
