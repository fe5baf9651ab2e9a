/* gblock and cyclic distributions, templates that are fixed later, gmoves, broadcasts, tasks, in round brackets. Its
 * output is that of the same program without directives. */
#include <stdio.h>

#define N 29
#define MOST 16

#ifdef _XCALABLEMP
#include "xmp.h"
#endif

#pragma xmp nodes p(*)
#pragma xmp template later(:)
#pragma xmp template cards(0 : N - 1)
#pragma xmp template plain(0 : N - 1)
#pragma xmp distribute later(gblock(*)) onto p
#pragma xmp distribute cards(cyclic(2)) onto p
#pragma xmp distribute plain(block) onto p

static int hand[N], row[N], back[N];
#pragma xmp align hand[i] with cards(i)
#pragma xmp align row[i] with plain(i)
#pragma xmp align back[i] with cards(i)
#pragma xmp shadow row[1]

/* The first nodes have most, the last one what is left, which may be nothing. */
static void uneven(int* map, int nodes) {
  int left = N;
  for (int k = 0; k < nodes; k++) {
    map[k] = k == nodes - 1 || left < 12 ? left : 12;
    left -= map[k];
  }
}

int main(void) {
  int map[MOST], all = 1, where = -1, top = -1, second = 0;
  long sum = 0, values[3] = {0, 0, 0};
#ifdef _XCALABLEMP
  all = xmp_num_nodes();
#endif
  uneven(map, all);
#pragma xmp template_fix(gblock(map)) later(0 : N - 1)
  long parts[N];
#pragma xmp align parts[i] with later(i)
#pragma xmp shadow parts[2 : 1]
#pragma xmp loop(i) on later(i)
  for (int i = 0; i < N; i++) parts[i] = i * i % 31;
  for (int step = 0; step < 3; step++) {
#pragma xmp loop on cards(i)
    for (int i = 0; i < N; i++) hand[i] = (i * 7 + step) % N;
#ifdef _XCALABLEMP
#pragma xmp gmove
    row [0:N] = hand [0:N];
#pragma xmp gmove
    back [1:9:3] = row [2:9:2];
#else
    for (int i = 0; i < N; i++) row[i] = hand[i];
    for (int i = 0; i < 9; i++) back[1 + 3 * i] = row[2 + 2 * i];
#endif
#pragma xmp gmove
    second = back[4];
#pragma xmp reflect(row)
#pragma xmp loop on plain(i) reduction(+ : sum)
    for (int i = 1; i < N - 1; i++) sum += row[i - 1] * 2 + row[i + 1] * (step + 1);
#pragma xmp loop on cards(i) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += back[i] * (i + 1);
    sum += second;
#pragma xmp loop on plain(i) reduction(firstmax : top / where /)
    for (int i = 0; i < N; i++)
      if (row[i] % 11 > top) {
        top = row[i] % 11;
        where = i;
      }
#pragma xmp barrier
  }
#pragma xmp tasks
  {
#pragma xmp task on p(1)
    {
      for (int k = 0; k < 3; k++) values[k] = k * 10 + top;
    }
  }
#pragma xmp bcast(values) from p(1)
#pragma xmp loop on later(i) reduction(+ : sum)
  for (int i = 0; i < N; i++) sum += parts[i] * values[i % 3];
#pragma xmp task on p(1)
  printf("sum %ld, top %d at %d\n", sum, top, where);
  return 0;
}
