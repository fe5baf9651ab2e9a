/* Shadows: expand, margin, peel_and_wait, widths, in square
 * brackets. Its output is that of the same program without directives. */
#include <stdio.h>

#define N 37
#define M 21

#pragma xmp nodes p[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto p

static int u[N][M], v[N][M], w[N][M];
#pragma xmp align [i][j] with t[i][j] :: u, v, w
#pragma xmp shadow [2][0] :: u, v

int main(void) {
  long sum = 0;
  int most = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (i * 13 + j * 5) % 17;
  for (int step = 1; step < 4; step++) {
#pragma xmp reflect (u) width[2][0]
#pragma xmp loop on t[i][*] expand[1:1][0]
    for (int i = 1; i < N - 1; i++)
      for (int j = 0; j < M; j++) v[i][j] = u[i - 1][j] + u[i + 1][j] + step;
    /* what the next loop needs of v is there */
#pragma xmp loop on t[i][*] reduction(max : most)
    for (int i = 2; i < N - 2; i++)
      for (int j = 1; j < M; j++) {
        w[i][j] = v[i - 1][j] - v[i + 1][j - 1];
        if (w[i][j] > most) most = w[i][j];
      }
#pragma xmp reflect (u) width[1][0] async(step)
#pragma xmp loop on t[i][j] peel_and_wait(step, -1, 0)
    for (int i = 1; i < N - 1; i++)
      for (int j = 0; j < M; j++) v[i][j] = u[i - 1][j] * 3 - u[i + 1][j];
#pragma xmp loop on t[i][j]
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) u[i][j] = (u[i][j] + v[i][j] + w[i][j] + 40) % 23;
  }
#pragma xmp loop on t[i][j] reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += (long)u[i][j] * (i + 1) + w[i][j] * j;
#pragma xmp task on p[0]
  printf("sum %ld, most %d\n", sum, most);
  return 0;
}
