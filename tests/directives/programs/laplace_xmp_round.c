/* Laplace's equation on a square by Jacobi's method, in XcalableMP, round brackets. */
#include <math.h>
#include <stdio.h>

#ifndef SIZE
#define SIZE 64
#endif
#define STEPS 100
#define ON_ROWS_AND_COLUMNS on t(x, y)

#pragma xmp nodes p(2, *)
#pragma xmp template t(0:SIZE-1, 0:SIZE-1)
#pragma xmp distribute t(block, block) onto p

double u[SIZE][SIZE], old[SIZE][SIZE];
#pragma xmp align u[y][x] with t(x, y)
#pragma xmp align old[y][x] with t(x, y)
#pragma xmp shadow old[1][1]

static void fill(void) {
  const double step = 3.14159265358979 / (SIZE - 1);
#pragma xmp loop ON_ROWS_AND_COLUMNS
  for (int y = 0; y < SIZE; y++)
    for (int x = 0; x < SIZE; x++) {
      int edge = y == 0 || x == 0 || y == SIZE - 1 || x == SIZE - 1;
      u[y][x] = edge ? sin(step * x) + cos(step * y) : 0.0;
    }
}

int main(void) {
  double change = 0.0;
  fill();
  for (int step = 0; step < STEPS; step++) {
#pragma xmp loop ON_ROWS_AND_COLUMNS
    for (int y = 0; y < SIZE; y++)
      for (int x = 0; x < SIZE; x++) old[y][x] = u[y][x];
#pragma xmp reflect (old)
#pragma xmp loop ON_ROWS_AND_COLUMNS
    for (int y = 1; y < SIZE - 1; y++)
      for (int x = 1; x < SIZE - 1; x++)
        u[y][x] = 0.25 * (old[y - 1][x] + old[y + 1][x] + old[y][x - 1] + old[y][x + 1]);
  }
#pragma xmp loop ON_ROWS_AND_COLUMNS \
    reduction(+ : change)
  for (int y = 1; y < SIZE - 1; y++)
    for (int x = 1; x < SIZE - 1; x++) change += fabs(u[y][x] - old[y][x]);
#pragma xmp task on p(1, 1)
  printf("change %.16f\n", change);
  return 0;
}
