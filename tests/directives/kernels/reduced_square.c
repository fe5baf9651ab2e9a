/* Reductions whose variables stay on the GPU: in the default stream, in queues, over several nests, and scalars that
 * kernels set and read there. In square brackets. */
#include <stdio.h>

#define N 37
#define M 9

#pragma xmp nodes p[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto p
static long u[N][M];
#pragma xmp align u[i][j] with t[i][j]
#pragma xmp shadow u[1][0]

static long run(void) {
  long sum = 5, most = -1, both = 0, scale = 0, seen = 0;
  unsigned long product = 1;
#pragma acc data copy(sum, most, both, product) create(scale) copyout(seen)
  {
    for (int step = 0; step < 4; step++) {
#pragma acc serial
      {
        both = 0;
        scale = step + 2;
      }
#pragma xmp bcast(scale) from p[0] on p acc
#pragma xmp reflect(u) acc
#pragma xmp loop on t[i][j] reduction(+ : sum, both) reduction(max : most)
#pragma acc parallel loop collapse(2) present(u) reduction(+ : sum, both) reduction(max : most) async(2)
      for (int i = 1; i < N - 1; i++)
        for (int j = 0; j < M; j++) {
          sum += u[i - 1][j] + u[i + 1][j];
          both += u[i][j];
          most = u[i][j] > most ? u[i][j] : most;
        }
#pragma acc wait(2)
#pragma xmp loop on t[i][j] reduction(+ : both)
#pragma acc parallel loop collapse(2) present(u) reduction(+ : both)
      for (int i = 0; i < N; i += 2)
        for (int j = 0; j < M; j++) both += u[i][j] & 3;
#pragma xmp loop on t[i][*] reduction(* : product)
#pragma acc parallel loop present(u) reduction(* : product)
      for (int i = 0; i < N; i++) product *= u[i][0] % 2 == 0 ? 3 : 1;
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) present(u, both)
      for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) u[i][j] = (u[i][j] * scale + both + j) % 101;
#pragma acc serial present(both)
      seen = both;
    }
  }
  return sum + 1000 * most + 7 * both + seen + (long)(product % 1009);
}

int main(void) {
  long result = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (i * 17 + j * 5) % 41;
#pragma acc enter data copyin(u)
  result = run();
#pragma acc exit data copyout(u)
#pragma xmp loop on t[i][j] reduction(+ : result)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) result += u[i][j] * (i + j);
#pragma xmp task on p[0]
  printf("result %ld\n", result);
  return 0;
}
