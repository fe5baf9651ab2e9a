/* A matrix by rows and by columns: template_fix, gmoves between the two, array statements, in round brackets. Its output
 * is that of the same program without directives. */
#include <stdio.h>

#define N 14
#define M 11

#pragma xmp nodes p(*)
#pragma xmp template rows(:, :)
#pragma xmp template columns(0 : M - 1, 0 : N - 1)
#pragma xmp distribute rows(*, block) onto p
#pragma xmp distribute columns(block, *) onto p

static int b[N][M], line[M];
#pragma xmp align b[i][j] with columns(j, i)

int main(void) {
  long sum = 0;
  int one = 0;
#pragma xmp template_fix rows(0 : M - 1, 0 : N - 1)
  int a[N][M];
#pragma xmp align a[i][j] with rows(j, i)
  for (int step = 0; step < 3; step++) {
#pragma xmp loop(i, j) on rows(j, i)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) a[i][j] = i * 31 + j * 7 + step;
#ifdef _XCALABLEMP
#pragma xmp gmove
    b[:][:] = a[:][:];
#pragma xmp array on columns(:, :)
    b[:][:] = b[:][:] * 3 - step;
#pragma xmp gmove
    a [2:5] [1:8] = b [7:5] [2:8];
#pragma xmp gmove
    line[:] = b[4][:];
#else
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) b[i][j] = a[i][j] * 3 - step;
    for (int i = 0; i < 5; i++)
      for (int j = 0; j < 8; j++) a[2 + i][1 + j] = b[7 + i][2 + j];
    for (int j = 0; j < M; j++) line[j] = b[4][j];
#endif
#pragma xmp gmove
    one = b[N - 1][M - 1];
#pragma xmp loop(i, j) on rows(j, i) reduction(+ : sum)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) sum += (long)a[i][j] * (i + 2 * j);
#pragma xmp loop(j) on columns(j, *) reduction(+ : sum)
    for (int j = 0; j < M; j++) sum += (long)b[3][j] * j;
    for (int j = 0; j < M; j++) sum += line[j] * (j + 1) + one;
  }
#pragma xmp task on p(1)
  printf("sum %ld\n", sum);
  return 0;
}
