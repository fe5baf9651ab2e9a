/* The Himeno benchmark (Jacobi's method for the pressure, 19 points, single precision), written by hand against xmp.h:
 * what
 *
 *   #pragma xmp nodes n[*][NJ][NK]
 *   #pragma xmp template t[I][J][K]
 *   #pragma xmp distribute t[block][block][block] onto n
 *   #pragma xmp align [i][j][k] with t[i][j][k] :: p, work
 *   #pragma xmp align [*][i][j][k] with t[i][j][k] :: c
 *   #pragma xmp shadow p[1:2][1:2][1]
 *
 * and `reflect_init (p) width(1,1,1)` stand for. The same pressures, bit by bit, as the program `himeno`.
 *   mpirun -n 4 himeno_xmp I J K STEPS [NJ NK]
 */
#include <stdio.h>
#include <stdlib.h>

#include "checksum.h"
#include "xmp.h"

/* The coefficients in one array, whose first dimension is not distributed: a 0-3, b 0-2, c 0-2, the mask, the source.
 */
enum { A = 0, B = 4, C = 7, MASK = 10, SOURCE = 11, COEFFICIENTS = 12 };
static const float kValues[COEFFICIENTS] = {1, 1, 1, 1.0f / 6, 0, 0, 0, 1, 1, 1, 1, 0};

typedef struct {
  float* at;
  int64_t i, j; /* strides */
} space;

static space space_of(xmp_desc_t array, int first) {
  xmp_view view;
  xmp_get_view(array, &view);
  const int64_t i = view.strides[first], j = view.strides[first + 1];
  return (space){(float*)view.data - view.base[first] * i - view.base[first + 1] * j - view.base[first + 2], i, j};
}

static double sweep_row(const float* z, int64_t si, int64_t sj, const float* const* c, float* restrict next,
                        int64_t from, int64_t to) {
  double gosa = 0;
#pragma omp simd reduction(+ : gosa)
  for (int64_t k = from; k < to; ++k) {
    const float cross_ij = z[k + si + sj] - z[k + si - sj] - z[k - si + sj] + z[k - si - sj];
    const float cross_jk = z[k + sj + 1] - z[k - sj + 1] - z[k + sj - 1] + z[k - sj - 1];
    const float cross_ik = z[k + si + 1] - z[k - si + 1] - z[k + si - 1] + z[k - si - 1];
    const float sum = c[A][k] * z[k + si] + c[A + 1][k] * z[k + sj] + c[A + 2][k] * z[k + 1] + c[B][k] * cross_ij +
                      c[B + 1][k] * cross_jk + c[B + 2][k] * cross_ik + c[C][k] * z[k - si] + c[C + 1][k] * z[k - sj] +
                      c[C + 2][k] * z[k - 1] + c[SOURCE][k];
    const float residual = (sum * c[A + 3][k] - z[k]) * c[MASK][k];
    gosa += (double)(residual * residual);
    next[k] = z[k] + 0.8f * residual;
  }
  return gosa;
}

int main(int argc, char** argv) {
  int64_t n[3] = {33, 34, 65};
  for (int d = 0; d < 3 && argc > d + 1; ++d) n[d] = atoll(argv[d + 1]);
  const int steps = argc > 4 ? atoi(argv[4]) : 3;
  xmp_desc_t nodes, t, p, work, coefficients;
  xmp_init(argc, argv);
  xmp_nodes(&nodes, 3, (int64_t[]){0, argc > 5 ? atoll(argv[5]) : 1, argc > 6 ? atoll(argv[6]) : 1});
  xmp_template(&t, 3, (xmp_range[]){{0, n[0], 1}, {0, n[1], 1}, {0, n[2], 1}});
  xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}}, nodes);
  xmp_array_spec spec = {.name = "p", .type = XMP_F32, .ndims = 3, .extents = n};
  xmp_array(&p, &spec, t);
  xmp_shadow(p, (xmp_width[]){{1, 2}, {1, 2}, {1, 1}});
  spec.name = "work";
  xmp_array(&work, &spec, t);
  const xmp_array_spec several = {.name = "coefficients",
                                  .type = XMP_F32,
                                  .ndims = 4,
                                  .extents = (int64_t[]){COEFFICIENTS, n[0], n[1], n[2]},
                                  .axis = (int[]){XMP_COLLAPSED, 0, 1, 2}};
  xmp_array(&coefficients, &several, t);
  xmp_allocate(p, NULL);
  xmp_allocate(work, NULL);
  xmp_allocate(coefficients, NULL);

  const space pressure = space_of(p, 0), next = space_of(work, 0), c0 = space_of(coefficients, 1);
  xmp_view view;
  xmp_get_view(coefficients, &view);
  const int64_t between = view.strides[0];
  const xmp_range inner[] = {{1, n[0] - 1, 1}, {1, n[1] - 1, 1}, {1, n[2] - 1, 1}};
  xmp_nests all, loop;
  xmp_loop_nests(t, NULL, XMP_EXPAND, NULL, &all);
  xmp_loop_nests(t, inner, XMP_EXPAND, NULL, &loop);
  const xmp_range *const a = all.ranges[0], *const r = loop.ranges[0];

  for (int64_t i = a[0].first; all.count > 0 && i < a[0].end; ++i)
    for (int64_t j = a[1].first; j < a[1].end; ++j)
      for (int64_t k = a[2].first; k < a[2].end; ++k) {
        pressure.at[i * pressure.i + j * pressure.j + k] = (float)(i * i) / (float)((n[0] - 1) * (n[0] - 1));
        for (int m = 0; m < COEFFICIENTS; ++m) c0.at[m * between + i * c0.i + j * c0.j + k] = kValues[m];
      }

  double gosa = 0;
  double copy = 0;
  xmp_reflect_init(1, &p, &(xmp_reflect_options){.width = (xmp_width[]){{1, 1}, {1, 1}, {1, 1}}});
  const double began = xmp_wtime();
  for (int step = 0; step < steps; ++step) {
    gosa = 0;
    xmp_reflect_do(1, &p);
    for (int64_t i = r[0].first; loop.count > 0 && i < r[0].end; ++i)
      for (int64_t j = r[1].first; j < r[1].end; ++j) {
        const float* c[COEFFICIENTS];
        for (int m = 0; m < COEFFICIENTS; ++m) c[m] = c0.at + m * between + i * c0.i + j * c0.j;
        gosa += sweep_row(pressure.at + i * pressure.i + j * pressure.j, pressure.i, pressure.j, c,
                          next.at + i * next.i + j * next.j, r[2].first, r[2].end);
      }
    const double copying = xmp_wtime();
    for (int64_t i = r[0].first; loop.count > 0 && i < r[0].end; ++i)
      for (int64_t j = r[1].first; j < r[1].end; ++j) {
        float* const to = pressure.at + i * pressure.i + j * pressure.j;
        const float* const from = next.at + i * next.i + j * next.j;
#pragma omp simd
        for (int64_t k = r[2].first; k < r[2].end; ++k) to[k] = from[k];
      }
    copy += xmp_wtime() - copying;
    xmp_reduction(XMP_SUM, 1, &(xmp_variable){&gosa, 1, XMP_F64}, NULL);
  }
  const double took = (xmp_wtime() - began) / steps;

  uint64_t sum = 0;
  for (int64_t i = a[0].first; all.count > 0 && i < a[0].end; ++i)
    for (int64_t j = a[1].first; j < a[1].end; ++j)
      for (int64_t k = a[2].first; k < a[2].end; ++k)
        sum += checksum(&pressure.at[i * pressure.i + j * pressure.j + k], sizeof(float), (i * n[1] + j) * n[2] + k);
  xmp_reduction(XMP_SUM, 1, &(xmp_variable){&sum, 1, XMP_U64}, NULL);
  if (xmpc_node_num() == 0)
    printf("%.2f us a step, %.2f to copy  gosa %.6e  checksum %016llx\n", took * 1e6, copy * 1e6 / steps, gosa,
           (unsigned long long)sum);
  return xmp_finalize();
}
