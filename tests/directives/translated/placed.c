/* Arrays at one index of a template, static arrays of functions, loops that count down, and waits of some nodes. Its
 * output is that of the same program without directives. */
#include <stdio.h>

#define N 23
#define M 17

#pragma xmp nodes p[*][1]
#pragma xmp nodes q(1, *)
#pragma xmp template t[N][M]
#pragma xmp template s(0:M-1, -3:N-4)
#pragma xmp distribute t[block][block] onto p
#pragma xmp distribute s(block, block) onto q

static long a[N][M], line[M], column[N], turned[N];
#pragma xmp align a[i][j] with t[i][j]
#pragma xmp align line[j] with t[N / 2][j]
#pragma xmp align column[i] with t[i][3]
#pragma xmp align turned[i] with s(5, i - 3)
#pragma xmp shadow a[1][0]

static long calls(void) {
  static long seen[N];
#pragma xmp align seen[i] with t[i][*]
  long sum = 0;
#pragma xmp loop on t[i][*] reduction(+ : sum)
  for (int i = N - 1; i >= 0; i--) {
    seen[i] += i;
    sum += seen[i];
  }
  return sum;
}

int main(void) {
  long sum = 0, middle = 0;
#pragma xmp loop on t[i][j]
  for (int i = N - 1; i > -1; --i)
    for (int j = M - 1; j >= 0; j -= 1) a[i][j] = i * 100 + j;
#pragma xmp loop on t[N / 2][j]
  for (int j = 0; j < M; j++) line[j] = a[N / 2][j] + 1;
#pragma xmp loop on t[i][3] reduction(+ : sum)
  for (int i = 0; i < N; i++) {
    column[i] = a[i][3] - 1;
    sum += column[i] * i;
  }
  /* Only the owners of that row run and combine this: the others are told. */
#pragma xmp loop on t[N / 2][j] reduction(+ : middle)
  for (int j = 0; j < M; j++) middle += line[j] * j;
#pragma xmp bcast (middle) from t[N / 2][0]
#pragma xmp loop on s(5, i - 3) reduction(+ : sum)
  for (unsigned i = N - 1; i > 0; i--) {
    turned[i] = 3 * (long)i;
    sum += turned[i];
  }
#pragma xmp reflect (a) async(3)
#pragma xmp wait_async(3) on p
  for (int call = 0; call < 3; call++) sum += calls();
#pragma xmp task on p[0][0]
  printf("sum %ld, of the row in the middle %ld\n", sum, middle);
  return 0;
}
