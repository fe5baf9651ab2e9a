/* Laplace's equation by Jacobi's method, written by hand against xmp.h: what the directives of
 *
 *   #pragma xmp nodes p[*][columns of nodes]
 *   #pragma xmp template t[ROWS][COLUMNS]
 *   #pragma xmp distribute t[block][block] onto p
 *   #pragma xmp align [i][j] with t[i][j] :: u, old
 *   #pragma xmp shadow old[1][1]
 *
 * and of the loops below stand for. The same values, bit by bit, as the program `laplace`.
 *   mpirun -n 4 laplace_xmp ROWS COLUMNS STEPS [COLUMNS-OF-NODES]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "checksum.h"
#include "xmp.h"

/* Where global indices are in memory: element (i, j) is at at[i * stride + j]. */
typedef struct {
  double* at;
  int64_t stride;
} plane;

static plane plane_of(xmp_desc_t array) {
  xmp_view view;
  xmp_get_view(array, &view);
  return (plane){(double*)view.data - view.base[0] * view.strides[0] - view.base[1], view.strides[0]};
}

/* Calls `row` for this node's part of every row of a nest of iterations. */
static double each_row(const xmp_nests* nests, double (*row)(int64_t i, int64_t from, int64_t to, plane u, plane old),
                       plane u, plane old) {
  double most = 0;
  for (int n = 0; n < nests->count; ++n) {
    const xmp_range* const r = nests->ranges[n];
    for (int64_t i = r[0].first; i < r[0].end; ++i) most = fmax(most, row(i, r[1].first, r[1].end, u, old));
  }
  return most;
}

static double copy_row(int64_t i, int64_t from, int64_t to, plane u, plane old) {
#pragma omp simd
  for (int64_t j = from; j < to; ++j) old.at[i * old.stride + j] = u.at[i * u.stride + j];
  return 0;
}

static double new_row(int64_t i, int64_t from, int64_t to, plane u, plane old) {
  const double* const row = old.at + i * old.stride;
  const double *const above = row - old.stride, *const below = row + old.stride;
  double* const next = u.at + i * u.stride;
  double change = 0;
#pragma omp simd reduction(max : change)
  for (int64_t j = from; j < to; ++j) {
    next[j] = 0.25 * ((above[j] + below[j]) + (row[j - 1] + row[j + 1]));
    const double difference = fabs(next[j] - row[j]);
    change = difference > change ? difference : change;
  }
  return change;
}

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? atoll(argv[1]) : 64, columns = argc > 2 ? atoll(argv[2]) : 64;
  const int steps = argc > 3 ? atoi(argv[3]) : 100;
  xmp_desc_t p, t, u, old;
  xmp_init(argc, argv);
  xmp_nodes(&p, 2, (int64_t[]){0, argc > 4 ? atoll(argv[4]) : 1});
  xmp_template(&t, 2, (xmp_range[]){{0, rows, 1}, {0, columns, 1}});
  xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}}, p);
  xmp_array_spec spec = {.name = "u", .type = XMP_F64, .ndims = 2, .extents = (int64_t[]){rows, columns}};
  xmp_array(&u, &spec, t);
  spec.name = "old";
  xmp_array(&old, &spec, t);
  xmp_shadow(old, (xmp_width[]){{1, 1}, {1, 1}});
  xmp_allocate(u, NULL);
  xmp_allocate(old, NULL);
  const plane at = plane_of(u), before = plane_of(old);

  /* loop on t, over everything and over what has four neighbours; and the latter in two parts, of which the first needs
   * no shadow. */
  const xmp_range inner[] = {{1, rows - 1, 1}, {1, columns - 1, 1}};
  const xmp_width one[] = {{-1, -1}, {-1, -1}};
  xmp_nests all, interior, boundary;
  xmp_loop_nests(t, NULL, XMP_EXPAND, NULL, &all);
  xmp_loop_nests(t, inner, XMP_EXPAND, one, &interior);
  xmp_loop_nests(t, inner, XMP_MARGIN, one, &boundary);

  for (int n = 0; n < all.count; ++n) {
    const xmp_range* const r = all.ranges[n];
    for (int64_t i = r[0].first; i < r[0].end; ++i)
      for (int64_t j = r[1].first; j < r[1].end; ++j)
        at.at[i * at.stride + j] = i == 0 ? 1 : j == 0 ? (double)(rows - 1 - i) / (double)(rows - 1) : 0;
  }

  xmp_reflect_init(1, &old, &(xmp_reflect_options){.orthogonal = 1});
  double change = 0;
  double copy = 0;
  const double began = xmp_wtime();
  for (int step = 0; step < steps; ++step) {
    const double copying = xmp_wtime();
    each_row(&all, copy_row, at, before);
    copy += xmp_wtime() - copying;
    xmp_reflect_do_async(1, &old, 0); /* and peel_and_wait(0, -1, -1) */
    change = each_row(&interior, new_row, at, before);
    xmp_wait_async(1, (int[]){0});
    change = fmax(change, each_row(&boundary, new_row, at, before));
    xmp_reduction(XMP_MAX, 1, &(xmp_variable){&change, 1, XMP_F64}, NULL);
  }
  const double took = (xmp_wtime() - began) / steps;

  uint64_t sum = 0;
  for (int n = 0; n < all.count; ++n) {
    const xmp_range* const r = all.ranges[n];
    for (int64_t i = r[0].first; i < r[0].end; ++i)
      for (int64_t j = r[1].first; j < r[1].end; ++j)
        sum += checksum(&at.at[i * at.stride + j], sizeof(double), i * columns + j);
  }
  xmp_reduction(XMP_SUM, 1, &(xmp_variable){&sum, 1, XMP_U64}, NULL);
  if (xmpc_node_num() == 0)
    printf("%.2f us a step, %.2f to copy  change %.17g  checksum %016llx\n", took * 1e6, copy * 1e6 / steps, change,
           (unsigned long long)sum);
  xmp_free(&u);
  xmp_free(&old);
  return xmp_finalize();
}
