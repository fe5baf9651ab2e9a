/* Nodes that come in turn by post and wait, reductions and broadcasts of arrays, in square brackets. Its output is that
 * of the same program without directives. */
#include <stdio.h>
#ifdef _XCALABLEMP
#include "xmp.h"
#endif

#define N 31

#pragma xmp nodes p[*]
#pragma xmp template t[N]
#pragma xmp distribute t[cyclic] onto p

static double a[N];
#pragma xmp align a[i] with t[i]

int main(void) {
  int rank = 0, all = 1;
  double sums[2], table[4] = {0};
#ifdef _XCALABLEMP
  rank = xmpc_node_num();
  all = xmp_num_nodes();
#endif
  for (int step = 0; step < 3; step++) {
    unsigned bits = 0;
    int same = 1;
    sums[0] = sums[1] = 0;
    if (rank > 0) {
#pragma xmp wait(p[rank - 1], 20 + step)
    }
#pragma xmp loop on t[i]
    for (int i = 0; i < N; i++) {
      a[i] = 0.5 * (i * step % 9);
      sums[0] += a[i];
      sums[1] += a[i] * i;
      bits |= 1u << (i % 7);
      same = same && a[i] >= 0;
    }
    if (rank < all - 1) {
#pragma xmp post(p[rank + 1], 20 + step)
    }
#pragma xmp reduction(+ : sums) on p
#pragma xmp reduction(| : bits)
#pragma xmp reduction(&& : same)
    if (rank == all - 1)
      for (int k = 0; k < 4; k++) table[k] = step + k * 0.25;
#pragma xmp bcast(table) from p[all - 1]
#pragma xmp barrier
#pragma xmp task on p[0]
    printf("step %d: %g %g, %u, %d, %g\n", step, sums[0], sums[1], bits, same, table[3]);
  }
  return 0;
}
