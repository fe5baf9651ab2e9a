/* The pressure solver of Himeno's benchmark, 19 points, in XcalableACC, round brackets. */
#include <stdio.h>
#include <stdlib.h>

#ifndef NI
#define NI 33
#define NJ 33
#define NK 65
#endif
#define WIDTHS 1, 1, 1
#define ON_POINTS on t(k, j, i)

#pragma xmp nodes nodes_of_grid(1, 2, *)
#pragma xmp template t(0:NK-1, 0:NJ-1, 0:NI-1)
#pragma xmp distribute t(block, block, block) onto nodes_of_grid

float p[NI][NJ][NK], work1[NI][NJ][NK], work2[NI][NJ][NK], boundary[NI][NJ][NK];
float a[4][NI][NJ][NK], b[3][NI][NJ][NK], c[3][NI][NJ][NK];
#pragma xmp align p[i][j][k] with t(k, j, i)
#pragma xmp align work1[i][j][k] with t(k, j, i)
#pragma xmp align work2[i][j][k] with t(k, j, i)
#pragma xmp align boundary[i][j][k] with t(k, j, i)
#pragma xmp align [*][i][j][k] with t(k, j, i) :: a, b, c
#pragma xmp shadow p[1:2][1:2][1]

static void initialise(void) {
#pragma xmp loop ON_POINTS
  for (int i = 0; i < NI; i++)
    for (int j = 0; j < NJ; j++)
      for (int k = 0; k < NK; k++) {
        for (int n = 0; n < 3; n++) {
          a[n][i][j][k] = 1.0f;
          b[n][i][j][k] = 0.0f;
          c[n][i][j][k] = 1.0f;
        }
        a[3][i][j][k] = 1.0f / 6.0f;
        p[i][j][k] = (float)(i * i) / (float)((NI - 1) * (NI - 1));
        work1[i][j][k] = work2[i][j][k] = 0.0f;
        boundary[i][j][k] = 1.0f;
      }
}

static float solve(int steps) {
  const float omega = 0.8f;
  float gosa = 0.0f, s0, ss;
#pragma xmp reflect_init (p) width(WIDTHS) acc
  for (int n = 0; n < steps; n++) {
    gosa = 0.0f;
#pragma xmp reflect_do (p) acc
#pragma xmp loop (k, j, i) ON_POINTS reduction(+ : gosa)
#pragma acc parallel loop collapse(3) reduction(+ : gosa) private(s0, ss) firstprivate(omega) async(1)
    for (int i = 1; i < NI - 1; i++)
      for (int j = 1; j < NJ - 1; j++)
        for (int k = 1; k < NK - 1; k++) {
          s0 = a[0][i][j][k] * p[i + 1][j][k] + a[1][i][j][k] * p[i][j + 1][k] +
               a[2][i][j][k] * p[i][j][k + 1] +
               b[0][i][j][k] * (p[i + 1][j + 1][k] - p[i + 1][j - 1][k] - p[i - 1][j + 1][k] + p[i - 1][j - 1][k]) +
               b[1][i][j][k] * (p[i][j + 1][k + 1] - p[i][j - 1][k + 1] - p[i][j + 1][k - 1] + p[i][j - 1][k - 1]) +
               b[2][i][j][k] * (p[i + 1][j][k + 1] - p[i - 1][j][k + 1] - p[i + 1][j][k - 1] + p[i - 1][j][k - 1]) +
               c[0][i][j][k] * p[i - 1][j][k] + c[1][i][j][k] * p[i][j - 1][k] + c[2][i][j][k] * p[i][j][k - 1] +
               work1[i][j][k];
          ss = (s0 * a[3][i][j][k] - p[i][j][k]) * boundary[i][j][k];
          gosa += ss * ss;
          work2[i][j][k] = p[i][j][k] + omega * ss;
        }
#pragma xmp loop (k, j, i) ON_POINTS
#pragma acc parallel loop gang vector_length(128) collapse(3) async(1)
    for (int i = 1; i < NI - 1; i++)
      for (int j = 1; j < NJ - 1; j++)
        for (int k = 1; k < NK - 1; k++) p[i][j][k] = work2[i][j][k];
#pragma acc wait
  }
  return gosa;
}

int main(int argc, char **argv) {
  float gosa;
  initialise();
#pragma acc data copy(p) copyin(a, b, c, boundary[0:NI][0:NJ][0:NK], work1) create(work2)
  {
  gosa = solve(argc > 1 ? atoi(argv[1]) : 3);
#pragma xmp barrier acc
#pragma xmp task on nodes_of_grid(1, 1, 1)
  printf("gosa %e\n", gosa);
  }
  return 0;
}
