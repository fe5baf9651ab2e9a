/* Relaxation with a reflect that is prepared, one that travels while another array is computed, and the residual by a
 * directive, in round brackets. Its output is that of the same program without directives. */
#include <stdio.h>

#define N 29
#define M 13

#pragma xmp nodes p(*)
#pragma xmp template t(0 : M - 1, 0 : N - 1)
#pragma xmp distribute t(*, block) onto p

static int u[N][M], v[N][M], w[N];
#pragma xmp align u[i][j] with t(j, i)
#pragma xmp align v[i][j] with t(j, i)
#pragma xmp align w[i] with t(*, i)
#pragma xmp shadow u[2][0]
#pragma xmp shadow w[1 : 2]

int main(void) {
  long residual = 0;
#pragma xmp loop(i, j) on t(j, i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (i * 37 + j * 11) % 101;
#pragma xmp reflect_init(u) width(1, 0)
  for (int step = 0; step < 4; step++) {
    residual = 0;
#pragma xmp reflect_do(u)
#pragma xmp loop(i, j) on t(j, i)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < M - 1; j++) {
        v[i][j] = (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) / 4;
        residual += (v[i][j] - u[i][j]) * (v[i][j] - u[i][j]);
      }
#pragma xmp reduction(+ : residual)
#pragma xmp loop(i) on t(*, i)
    for (int i = 0; i < N; i++) w[i] = i * step % 7;
#pragma xmp reflect(w) async(2)
#pragma xmp loop(i, j) on t(j, i)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < M - 1; j++) u[i][j] = v[i][j];
#pragma xmp wait_async(2)
#pragma xmp loop(i) on t(*, i)
    for (int i = 1; i < N - 2; i++) u[i][0] = w[i - 1] + 2 * w[i + 2];
#pragma xmp task on p(1)
    printf("residual %ld\n", residual);
  }
  return 0;
}
