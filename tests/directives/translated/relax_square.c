/* Three dimensions, corners of the shadow, two reflects that travel together, in square brackets. Its output is that of
 * the same program without directives. */
#include <stdio.h>

#define L 5
#define M 17
#define N 9

#pragma xmp nodes p[*][1]
#pragma xmp template t[M][N]
#pragma xmp distribute t[block][block] onto p

static int u[L][M][N], v[L][M][N], f[M][N];
#pragma xmp align u[*][i][j] with t[i][j]
#pragma xmp align v[*][i][j] with t[i][j]
#pragma xmp align f[i][j] with t[i][j]
#pragma xmp shadow u[0][1][1]
#pragma xmp shadow f[1:2][1]

int main(void) {
  long sum = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      f[i][j] = i + j;
      for (int k = 0; k < L; k++) u[k][i][j] = (k * 100 + i * 10 + j) % 47;
    }
#pragma xmp reflect_init(u)
  for (int step = 0; step < 3; step++) {
#pragma xmp reflect(f) async(1)
#pragma xmp reflect_do(u)
#pragma xmp loop on t[i][j]
    for (int i = 1; i < M - 1; i++)
      for (int j = 1; j < N - 1; j++)
        for (int k = 0; k < L; k++) v[k][i][j] = u[k][i - 1][j + 1] - u[k][i + 1][j - 1] + u[k][i][j];
#pragma xmp wait_async(1)
    long part = 0;
#pragma xmp loop on t[i][j]
    for (int i = 1; i < M - 2; i++)
      for (int j = 1; j < N - 1; j++) {
        part += f[i + 2][j - 1] * v[2][i][j];
        for (int k = 0; k < L; k++) u[k][i][j] = v[k][i][j] % 53;
      }
#pragma xmp reduction(+ : part) on p
    sum += part;
#pragma xmp loop on t[i][j]
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) f[i][j] += step;
  }
#pragma xmp task on p[0][0]
  printf("sum %ld\n", sum);
  return 0;
}
