/* The Himeno benchmark (Jacobi's method for the pressure, 19 points, single precision) in XcalableACC, round brackets.
 * The same pressures, bit by bit, as the program `himeno`; runtime/examples/himeno.cu is what its loops and reflects
 * are by hand. The residual is summed over all nodes in every iteration, on the
 * GPU, where it stays.
 *
 *     tasuki-cc --device gpu -arch=sm_90 -O2 -ffp-contract=off -I directives/runtime/examples himeno_xacc_round.c
 */
#include <stdio.h>

#include "checksum.h"
#include "xmp.h"

#ifndef I
#define I 33
#define J 34
#define K 65
#define STEPS 3
#endif
#ifndef NODES_J
#define NODES_J 1
#define NODES_K 1
#endif

#pragma xmp nodes n(NODES_K, NODES_J, *)
#pragma xmp template t(0 : K - 1, 0 : J - 1, 0 : I - 1)
#pragma xmp distribute t(block, block, block) onto n

static float p[I][J][K], work[I][J][K], bound[I][J][K], source[I][J][K];
static float a[4][I][J][K], b[3][I][J][K], c[3][I][J][K];
#pragma xmp align[i][j][k] with t(k, j, i)::p, work, bound, source
#pragma xmp align[*][i][j][k] with t(k, j, i)::a, b, c
#pragma xmp shadow p[1 : 2][1 : 2][1]

static void fill(void) {
#pragma xmp loop on t(k, j, i)
  for (int i = 0; i < I; i++)
    for (int j = 0; j < J; j++)
      for (int k = 0; k < K; k++) {
        for (int m = 0; m < 3; m++) {
          a[m][i][j][k] = c[m][i][j][k] = 1;
          b[m][i][j][k] = 0;
        }
        a[3][i][j][k] = 1.0f / 6;
        bound[i][j][k] = 1;
        source[i][j][k] = 0;
        p[i][j][k] = (float)(i * i) / (float)((I - 1) * (I - 1));
      }
}

int main(void) {
  double gosa = 0;
  uint64_t sum = 0;
  fill();
#pragma acc enter data copyin(p, bound, source, a, b, c) create(work, gosa)
#pragma xmp reflect_init(p) width(1, 1, 1) acc
  const double began = xmp_wtime();
  for (int step = 0; step < STEPS; step++) {
#pragma acc serial present(gosa)
    gosa = 0;
#pragma xmp reflect_do(p) acc
#pragma xmp loop on t(k, j, i) reduction(+ : gosa)
#pragma acc parallel loop collapse(3) default(present) present(gosa) reduction(+ : gosa)
    for (int i = 1; i < I - 1; i++)
      for (int j = 1; j < J - 1; j++)
        for (int k = 1; k < K - 1; k++) {
          const float ij = p[i + 1][j + 1][k] - p[i + 1][j - 1][k] - p[i - 1][j + 1][k] + p[i - 1][j - 1][k];
          const float jk = p[i][j + 1][k + 1] - p[i][j - 1][k + 1] - p[i][j + 1][k - 1] + p[i][j - 1][k - 1];
          const float ik = p[i + 1][j][k + 1] - p[i - 1][j][k + 1] - p[i + 1][j][k - 1] + p[i - 1][j][k - 1];
          const float all = a[0][i][j][k] * p[i + 1][j][k] + a[1][i][j][k] * p[i][j + 1][k] +
                            a[2][i][j][k] * p[i][j][k + 1] + b[0][i][j][k] * ij + b[1][i][j][k] * jk +
                            b[2][i][j][k] * ik + c[0][i][j][k] * p[i - 1][j][k] + c[1][i][j][k] * p[i][j - 1][k] +
                            c[2][i][j][k] * p[i][j][k - 1] + source[i][j][k];
          const float residual = (all * a[3][i][j][k] - p[i][j][k]) * bound[i][j][k];
          gosa += (double)(residual * residual);
          work[i][j][k] = p[i][j][k] + 0.8f * residual;
        }
#pragma xmp loop on t(k, j, i)
#pragma acc parallel loop collapse(3) default(present)
    for (int i = 1; i < I - 1; i++)
      for (int j = 1; j < J - 1; j++)
        for (int k = 1; k < K - 1; k++) p[i][j][k] = work[i][j][k];
  }
#pragma acc wait
  const double took = (xmp_wtime() - began) / STEPS;
#pragma acc exit data copyout(p, gosa) delete (bound, source, a, b, c, work)

#pragma xmp loop on t(k, j, i) reduction(+ : sum)
  for (int i = 0; i < I; i++)
    for (int j = 0; j < J; j++)
      for (int k = 0; k < K; k++) sum += checksum(&p[i][j][k], sizeof(float), ((int64_t)i * J + j) * K + k);
#pragma xmp task on n(1, 1, 1)
  printf("%.2f us a step  gosa %.6e  checksum %016llx\n", took * 1e6, gosa, (unsigned long long)sum);
  return 0;
}
