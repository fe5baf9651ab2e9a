/* Distributions, alignments and loops in round brackets. Its output is that of the same program without directives. */
#include <stdio.h>

#define N 53
#define ROWS 19
#define COLUMNS 23

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp template c(0 : N - 1)
#pragma xmp template c3(0 : N - 1)
#pragma xmp template wide(-3 : N + 9)
#pragma xmp template plane(0 : COLUMNS - 1, 0 : ROWS - 1)
#pragma xmp template from1(N)
#pragma xmp distribute t(block) onto p
#pragma xmp distribute c(cyclic) onto p
#pragma xmp distribute c3(cyclic(3)) onto p
#pragma xmp distribute wide(block) onto p
#pragma xmp distribute plane(*, block) onto p
#pragma xmp distribute from1(block) onto p

int a[N], plain = 7, shifted[N], first[N];
static long dealt[N], blocks[N];
double grid[ROWS][COLUMNS];
struct pair {
  int key;
  double value;
} pairs[N];
#pragma xmp align a[i] with t(i)
#pragma xmp align[i] with c(i)::dealt
#pragma xmp align blocks[i] with c3(i)
#pragma xmp align shifted[i] with wide(i - 2)
#pragma xmp align first[i] with from1(i + 1)
#pragma xmp align grid[i][j] with plane(j, i)
#pragma xmp align pairs[i] with t(i)
#pragma xmp shadow a[2]
#pragma xmp shadow grid[1][0]

static long checksum(void) {
  long sum = 0;
#pragma xmp loop on t(i) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += (long)a[i] * (i + 1) + pairs[i].key + (long)pairs[i].value;
#pragma xmp loop on c(i) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += dealt[i] * (2 * i + 1);
#pragma xmp loop on c3(i) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += blocks[i] * (3 * i + 1);
#pragma xmp loop on wide(i - 2) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += shifted[i] * (5 * i + 1);
#pragma xmp loop on from1(i + 1) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += first[i] * (7 * i + 1);
#pragma xmp loop(i) on plane(*, i) reduction(+ : sum)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) sum += (long)grid[i][j] * (i * COLUMNS + j);
  return sum;
}

int main(void) {
  int i, j, most = 2, least = 1000000;
  long product = 1;
  for (int step = 1; step < 4; step++) {
#pragma xmp loop on t(i)
    for (i = 0; i <= N - 1; ++i) {
      a[i] = i * step + plain;
      pairs[i].key = i * i;
      pairs[i].value = 0.5 * i + step;
    }
#pragma xmp loop on c(i)
    for (i = 1; i < N; i += 2) dealt[i] = dealt[i - 0] + i * step;
#pragma xmp loop on c3(i)
    for (i = 2; N > i; i = i + 5) blocks[i] += i + step;
#pragma xmp loop on wide(i - 2)
    for (i = 0; i < N; i++) shifted[i] = 3 * i - step;
#pragma xmp loop on from1(i + 1)
    for (i = 0; i < N; i++) first[i] = step + i % 5;
#pragma xmp loop(i, j) on plane(j, i)
    for (i = 0; i < ROWS; i++)
      for (j = i; j < COLUMNS; j++) grid[i][j] = i * j + step; /* its range depends on i */
#pragma xmp reflect(grid)
#pragma xmp loop(i) on plane(*, i)
    for (i = 1; i < ROWS - 1; i++)
      for (j = 0; j < i; j++) grid[i][j] = j + 2 * step;
    long sum = checksum();
#pragma xmp task on p(1)
    printf("step %d: %ld\n", step, sum);
  }
#pragma xmp reflect(a)
#pragma xmp loop on t(i) reduction(max : most) reduction(min : least)
  for (i = 2; i < N - 2; i++) {
    const int curve = a[i - 2] + a[i + 2] - 2 * a[i] + i;
    if (curve > most) most = curve;
    if (curve < least) least = curve;
  }
#pragma xmp loop on t(i) reduction(* : product)
  for (i = 0; i < N; i += 10) product *= i + 1;
#pragma xmp task on p(1)
  { printf("curves %d to %d, product %ld\n", least, most, product); }
  return 0;
}
