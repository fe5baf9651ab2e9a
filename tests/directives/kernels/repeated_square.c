/* Loops that are recorded as graphs on GPUs: with a reflect that is overlapped and one that is not, reductions that stay on
 * the GPU, a scalar that stays, one loop within another, and the same loop entered again with another scalar. In square
 * brackets. */
#include <stdio.h>

#define N 41
#define M 23

#pragma xmp nodes p[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto p
static long u[N][M], v[N][M];
#pragma xmp align[i][j] with t[i][j] ::u, v
#pragma xmp shadow u[1][0]

static void sweep(int times, long weight) {
  for (int step = 0; step < times; step++) {
#pragma xmp reflect(u) acc
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) default(present)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < M - 1; j++) v[i][j] = (u[i - 1][j] + weight * u[i + 1][j] + u[i][j - 1] - u[i][j + 1]) % 97;
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) default(present)
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < M - 1; j++) u[i][j] = v[i][j] + i;
  }
}

static long norms(void) {
  long sum = 0, product = 1, most = -1000, all = 0;
  for (int outer = 0; outer < 2; outer++) {
#pragma acc enter data copyin(sum, product, most, all)
    for (int step = 0; step < 5 + outer; ++step) {
#pragma acc serial present(sum, product)
      {
        sum = 1;
        product = 1;
      }
#pragma xmp reflect(u) acc
#pragma acc parallel loop present(all)
      for (int once = 0; once < 1; once++) all = all % 1009;
#pragma xmp loop on t[i][j] reduction(+ : sum) reduction(max : most)
#pragma acc parallel loop collapse(2) default(present) present(sum, most) reduction(+ : sum) reduction(max : most)
      for (int i = 1; i < N - 1; i++)
        for (int j = 0; j < M; j++) {
          sum += u[i - 1][j] + u[i + 1][j];
          most = u[i][j] > most ? u[i][j] : most;
        }
#pragma xmp loop on t[i][*] reduction(* : product)
#pragma acc parallel loop default(present) present(product) reduction(* : product)
      for (int i = 0; i < N; i++) product *= u[i][3] % 2 == 0 ? 3 : 1;
#pragma acc serial present(sum, product, all)
      all += sum * 7 + product % 10007;
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) default(present) present(all)
      for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) u[i][j] = (u[i][j] * 3 + all + j) % 101;
    }
#pragma acc exit data copyout(sum, product, most, all)
  }
  return sum + 31 * (product % 10007) + 1000 * most + all;
}

int main(void) {
  long result = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = v[i][j] = (i * 17 + j * 5) % 41;
#pragma acc enter data copyin(u, v)
  sweep(7, 2);
  sweep(3, 5);
  sweep(9, 3);
  result = norms();
#pragma acc exit data copyout(u, v)
#pragma xmp loop on t[i][j] reduction(+ : result)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) result += u[i][j] * (i + 3 * j);
#pragma xmp task on p[0]
  printf("result %ld\n", result);
  return 0;
}
