/* What has no serial meaning: each node checks itself, and the first one says how many checks failed anywhere. */
#include <stdio.h>

#include "xmp.h"

#define N 30

#pragma xmp nodes p(*)
#pragma xmp template t(0 : N - 1)
#pragma xmp distribute t(block) onto p
#pragma xmp nodes cells[*]

static int ring[N];
#pragma xmp align ring[i] with t(i)
#pragma xmp shadow ring[1 : 2]

int main(void) {
  int wrong = 0, nodes = 0, sum = xmpc_node_num() + 1, rank = xmpc_node_num(), all = xmp_num_nodes();
  int token = 0;
#pragma xmp loop on t(i)
  for (int i = 0; i < N; i++) ring[i] = i + 1;
#pragma xmp reflect(ring) width(/ periodic / 1 : 2) async(3)
#pragma xmp wait_async(3)
#pragma xmp loop on t(i) reduction(+ : wrong)
  for (int i = 0; i < N; i++) {
    wrong += ring[i - 1] != (i + N - 1) % N + 1;
    wrong += ring[i + 2] != (i + 2) % N + 1;
  }
#pragma xmp reduce_shadow(ring) width(0 : 1)
#pragma xmp loop on p(i) reduction(+ : nodes)
  for (int i = 1; i <= all; i++) nodes += i == rank + 1;
  wrong += nodes != all;
#pragma xmp reduction(+ : sum)
  wrong += sum != all * (all + 1) / 2;
  /* only the nodes of the task */
#pragma xmp task on cells[0 : 1]
  {
    int alone = 1;
#pragma xmp reduction(+ : alone)
    wrong += alone != 1 || xmp_num_nodes() != 1;
  }
  if (rank == 0) token = 11;
#pragma xmp bcast(token) from p(1) on p async(4)
#pragma xmp wait_async(4)
  wrong += token != 11;
  int group = 1;
#pragma xmp reduction(+ : group) on p(1 : 1)
  wrong += group != 1;
#pragma xmp post(cells[(rank + 1) % all], 5)
#pragma xmp wait(cells[(rank + all - 1) % all], 5)
  for (int round = 0; round < 3; round++) {
#pragma xmp task on p(all)
    {
      token = round;
      if (round == 1) continue; /* leaves the task */
    }
  }
#pragma xmp bcast(token) from p(all)
  wrong += token != 2 || xmp_num_nodes() != all;
#pragma xmp reduction(+ : wrong)
#pragma xmp task on p(1)
  printf("wrong: %d\n", wrong);
  return 0;
}
