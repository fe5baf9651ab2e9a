/* Tasks, loops, reductions, broadcasts, gmoves in square brackets; arrays of functions, parameters and pointers. Its
 * output is that of the same program without directives. */
#include <stdio.h>
#include <stdlib.h>
#ifdef _XCALABLEMP
#include "xmp.h"
#endif

#define N 41
#define M 12

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[block] onto p
#pragma xmp template open[ : ]
#pragma xmp distribute open[block] onto p

static int source[N], target[N], values[5];
#pragma xmp align[i] with t[i] ::source, target
static double* table;
static double (*rows)[M];
#pragma xmp align table[i] with open[i]
#pragma xmp align rows[i][*] with open[i]
#pragma xmp shadow rows[1][0]

static int total(int given[N]) {
#pragma xmp align given[i] with t[i]
  int sum = 0;
#pragma xmp loop(i) on t[i] reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += given[i] * (i % 7 + 1);
  return sum;
}

static int of_a_function(int n, int shift) {
#pragma xmp nodes mine[*] = *
#pragma xmp template local[0 : n]
#pragma xmp distribute local[cyclic] onto mine
  int unused = 1, scratch[n], last = 0;
#pragma xmp align scratch[i] with local[i]
#pragma xmp loop on local[i]
  for (int i = 0; i < n; i++) scratch[i] = i * shift + unused;
#pragma xmp loop on local[i] reduction(+ : last)
  for (int i = 0; i < n; i++) last += scratch[i];
  return last;
}

static void pointers(int n) {
#pragma xmp template_fix open[0 : n]
#ifdef _XCALABLEMP
  table = (double*)xmp_malloc(xmp_desc_of(table), n);
  rows = (double(*)[M])xmp_malloc(xmp_desc_of(rows), n, M);
#else
  table = malloc(sizeof(double) * n);
  rows = malloc(sizeof(double) * n * M);
#endif
  double sum = 0;
#pragma xmp loop on open[i]
  for (int i = 0; i < n; i++) {
    table[i] = i / 2.0;
    for (int j = 0; j < M; j++) rows[i][j] = i + 100 * j;
  }
#pragma xmp reflect(rows)
#pragma xmp loop on open[i] reduction(+ : sum)
  for (int i = 1; i < n - 1; i++) sum += table[i] * (rows[i - 1][3] + rows[i + 1][M - 1]);
#pragma xmp task on p[0]
  printf("pointers %g\n", sum);
}

int main(int argc, char** argv) {
  int best = -1, where = -1, copied = 0, all[N] = {0};
  (void)argv;
#pragma xmp loop on t[i]
  for (int i = 0; i < N; i++) source[i] = (i * 17) % 23;
#pragma xmp loop on t[i] reduction(firstmax : best / where /)
  for (int i = 0; i < N; i++)
    if (source[i] > best) {
      best = source[i];
      where = i;
    }
#ifdef _XCALABLEMP
#pragma xmp gmove
  target [0:20] = source [21:20];
#pragma xmp gmove
  target [20:7:3] = source [0:7];
#pragma xmp gmove
  all[:] = target[:];
#else
  for (int i = 0; i < 20; i++) target[i] = source[21 + i];
  for (int i = 0; i < 7; i++) target[20 + 3 * i] = source[i];
  for (int i = 0; i < N; i++) all[i] = target[i];
#endif
#pragma xmp gmove
  copied = source[N - 1];
#pragma xmp barrier
  int sum = 0;
  for (int i = 0; i < N; i++) sum += all[i] * (i + 3);
#pragma xmp tasks
  {
#pragma xmp task on p[0]
    {
      values[0] = 5;
      values[4] = argc + sum;
    }
  }
#pragma xmp bcast(values, best) from p[0]
  const int from_parameter = total(target), from_function = of_a_function(29, 3) + of_a_function(8, 5);
#pragma xmp task on t[N - 1]
  values[1] = source[N - 1];
#pragma xmp task on p[0]
  printf("%d at %d, copied %d, %d %d, sum %d, functions %d %d\n", best, where, copied, values[0], values[4], sum,
         from_parameter, from_function);
  pointers(37);
  return 0;
}
