/* `array`: assignments of sections, and the same as loops of plain C. */
#include <stdio.h>

#define N 31
#define M 9

#pragma xmp nodes p(*)
#pragma xmp template t(0 : M - 1, 0 : N - 1)
#pragma xmp distribute t(*, block) onto p

static int a[N][M], b[N][M], line[M];
#pragma xmp align[i][j] with t(j, i)::a, b

int main(void) {
  long sum = 0;
  for (int j = 0; j < M; j++) line[j] = 3 * j;
#pragma xmp loop on t(j, i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) a[i][j] = b[i][j] = i * M + j;
  for (int step = 1; step < 4; step++) {
#ifdef _XCALABLEMP
#pragma xmp array on t( :, :)
    a[:][:] = b[:][:] * 2 + step;
#pragma xmp array on t( :, :)
    a [2:10:2] [1:4] += a [2:10:2] [1:4] + b [2:10:2] [0:4];
#pragma xmp array on t( :, :)
    b[7] [0:M] = line [0:M] + step;
#else
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) a[i][j] = b[i][j] * 2 + step;
    for (int i = 2; i < 22; i += 2)
      for (int j = 1; j < 5; j++) a[i][j] += a[i][j] + b[i][j - 1];
    for (int j = 0; j < M; j++) b[7][j] = line[j] + step;
#endif
  }
#pragma xmp loop on t(j, i) reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += (long)a[i][j] * (i + 2 * j + 1) + b[i][j];
#pragma xmp task on p(1)
  printf("sum %ld\n", sum);
  return 0;
}
