/* Laplace's equation by Jacobi's method in XcalableACC, square brackets. The same values, bit by bit, as the program
 * `laplace`; runtime/examples/laplace.cu is what its loops and reflects are by hand.
 *   tasuki-cc --device gpu -arch=sm_90 -O2 -ffp-contract=off -I directives/runtime/examples laplace_xacc_square.c
 */
#include <math.h>
#include <stdio.h>

#include "checksum.h"
#include "xmp.h"

#ifndef ROWS
#define ROWS 64
#define COLUMNS 64
#define STEPS 100
#endif
#ifndef NODE_COLUMNS
#define NODE_COLUMNS 1
#endif

#pragma xmp nodes n[*][NODE_COLUMNS]
#pragma xmp template t[ROWS][COLUMNS]
#pragma xmp distribute t[block][block] onto n

static double u[ROWS][COLUMNS], old[ROWS][COLUMNS];
#pragma xmp align[i][j] with t[i][j] ::u, old
#pragma xmp shadow old[1][1]

int main(void) {
  double change = 0;
  uint64_t sum = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) u[i][j] = i == 0 ? 1 : j == 0 ? (double)(ROWS - 1 - i) / (double)(ROWS - 1) : 0;

#pragma acc enter data copyin(u) create(old, change)
#pragma xmp reflect_init(old) orthogonal acc
  const double began = xmp_wtime();
  for (int step = 0; step < STEPS; step++) {
#pragma acc serial present(change)
    change = 0;
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) present(u, old)
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLUMNS; j++) old[i][j] = u[i][j];
#pragma xmp reflect_do(old) acc
#pragma xmp loop on t[i][j] reduction(max : change)
#pragma acc parallel loop collapse(2) present(u, old, change) reduction(max : change)
    for (int i = 1; i < ROWS - 1; i++)
      for (int j = 1; j < COLUMNS - 1; j++) {
        u[i][j] = 0.25 * ((old[i - 1][j] + old[i + 1][j]) + (old[i][j - 1] + old[i][j + 1]));
        const double difference = fabs(u[i][j] - old[i][j]);
        change = difference > change ? difference : change;
      }
  }
#pragma acc wait
  const double took = (xmp_wtime() - began) / STEPS;
#pragma acc exit data copyout(u, change) delete (old)

#pragma xmp loop on t[i][j] reduction(+ : sum)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) sum += checksum(&u[i][j], sizeof(double), (int64_t)i * COLUMNS + j);
#pragma xmp task on n[0][0]
  printf("%.2f us a step  change %.17g  checksum %016llx\n", took * 1e6, change, (unsigned long long)sum);
  return 0;
}
