/* post and wait around a ring, reduction, bcast and barrier as directives of their own, in round brackets. Its output is
 * that of the same program without directives. */
#include <stdio.h>
#ifdef _XCALABLEMP
#include "xmp.h"
#endif

#define N 26

#pragma xmp nodes p(*)
#pragma xmp template t(N)
#pragma xmp distribute t(block) onto p

static int a[N];
#pragma xmp align a[i] with t(i + 1)

int main(void) {
  int rank = 1, all = 1, ready = 0;
#ifdef _XCALABLEMP
  rank = xmp_node_num();
  all = xmp_num_nodes();
#endif
  for (int step = 1; step <= 3; step++) {
    long sum = 0, most = -1;
#pragma xmp loop on t(i + 1)
    for (int i = 0; i < N; i++) a[i] = (i * 5 + step) % 13;
#pragma xmp loop on t(i + 1)
    for (int i = 0; i < N; i++) {
      sum += (long)a[i] * i;
      if (a[i] > most) most = a[i];
    }
#pragma xmp reduction(+ : sum)
#pragma xmp reduction(max : most) on p
#pragma xmp post(p(rank % all + 1), step)
#pragma xmp wait(p((rank + all - 2) % all + 1), step)
#pragma xmp barrier on p
    if (rank == 1) ready = step * 7 + (int)most;
#pragma xmp bcast(ready) from p(1) on p
    sum += ready;
#pragma xmp task on p(1)
    printf("step %d: %ld, at most %ld\n", step, sum, most);
  }
  return 0;
}
