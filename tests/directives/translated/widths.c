/* expand, margin, peel_and_wait, and reflects that are prepared. Its output is that of the same program without
 * directives. */
#include <stdio.h>

#define N 47
#define M 33

#pragma xmp nodes p[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto p

static float u[N][M], v[N][M], w[N][M];
#pragma xmp align[i][j] with t[i][j] ::u, v, w
#pragma xmp shadow[2][0] ::u, v

int main(void) {
  long sum = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (float)((i * 31 + j * 7) % 64);
#pragma xmp reflect_init(u)
  for (int step = 0; step < 4; step++) {
#pragma xmp reflect_do(u)
    /* v one layer beyond what a node owns, so that it needs no reflect */
#pragma xmp loop on t[i][j] expand[1][0]
    for (int i = 1; i < N - 1; i++)
      for (int j = 0; j < M; j++) v[i][j] = u[i - 1][j] + u[i + 1][j];
#pragma xmp loop on t[i][j]
    for (int i = 2; i < N - 2; i++)
      for (int j = 1; j < M - 1; j++) w[i][j] = v[i - 1][j] - v[i + 1][j] + step;
#pragma xmp loop on t[i][j]
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) u[i][j] = (float)(((long)w[i][j] + i * step + j) % 128);
#pragma xmp reflect(u) width(1, 0) async(9)
#pragma xmp loop on t[i][j] peel_and_wait(9, -1, 0) reduction(+ : sum)
    for (int i = 1; i < N - 1; i++)
      for (int j = 0; j < M; j++) {
        w[i][j] = u[i + 1][j] + 2 * u[i - 1][j];
        sum += (long)w[i][j] * (i + j);
      }
  }
#pragma xmp task on p[0]
  printf("sum %ld\n", sum);
  return 0;
}
