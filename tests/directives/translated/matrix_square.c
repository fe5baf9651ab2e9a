/* Templates that are fixed in functions, again and again, gmoves between unlike distributions, and array statements, in
 * square brackets. Its output is that of the same program without directives. */
#include <stdio.h>

#define N 33

#pragma xmp nodes p[*]
#pragma xmp template whole[N]
#pragma xmp distribute whole[cyclic] onto p

static double dealt[N];
#pragma xmp align dealt[i] with whole[i]

static double of_length(int n, double factor) {
#pragma xmp template t[:]
#pragma xmp distribute t[block] onto p
#pragma xmp template_fix t[n]
  double x[n], y[n], sum = 0, last = 0;
#pragma xmp align x[i] with t[i]
#pragma xmp align y[i] with t[i]
#pragma xmp loop on t[i]
  for (int i = 0; i < n; i++) x[i] = i * factor;
#ifdef _XCALABLEMP
#pragma xmp array on t[:]
  y[:] = x[:] + 0.5;
#pragma xmp array on t[:]
  x[:] += y[:] * 2;
#pragma xmp gmove
  dealt [1:n] = x [0:n];
#pragma xmp gmove
  y [0:n] = dealt [1:n];
#else
  for (int i = 0; i < n; i++) y[i] = x[i] + 0.5;
  for (int i = 0; i < n; i++) x[i] += y[i] * 2;
  for (int i = 0; i < n; i++) dealt[1 + i] = x[i];
  for (int i = 0; i < n; i++) y[i] = dealt[1 + i];
#endif
#pragma xmp gmove
  last = dealt[n];
#pragma xmp loop on t[i] reduction(+ : sum)
  for (int i = 0; i < n; i++) sum += y[i] * (i + 1);
  return sum + last;
}

int main(void) {
  double sum = 0;
#pragma xmp loop on whole[i]
  for (int i = 0; i < N; i++) dealt[i] = -i;
  for (int n = 1; n < N; n += 10) sum += of_length(n, 0.5 * n);
#pragma xmp loop on whole[i] reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += dealt[i];
#pragma xmp task on p[0]
  printf("sum %.1f\n", sum);
  return 0;
}
