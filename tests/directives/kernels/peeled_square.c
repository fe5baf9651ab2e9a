/* A reflect on the GPU that travels while the interior is computed: async and peel_and_wait, in square brackets. */
#include <stdio.h>

#define N 23
#define M 12

#pragma xmp nodes p[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto p
static int u[N][M], v[N][M];
#pragma xmp align [i][j] with t[i][j] :: u, v
#pragma xmp shadow u[2][0]

int main(void) {
  long sum = 0;
#pragma xmp loop on t[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (i * 17 + j * 5) % 41;
#pragma acc enter data copyin(u) create(v)
  for (int step = 0; step < 4; step++) {
    long part = 0;
#pragma xmp reflect (u) async(7) acc
#pragma xmp loop on t[i][j] peel_and_wait(7, -2, 0) reduction(+ : part)
#pragma acc parallel loop collapse(2) present(u, v) reduction(+ : part)
    for (int i = 2; i < N - 2; i++)
      for (int j = 0; j < M; j++) {
        v[i][j] = u[i - 2][j] + u[i + 2][j] - u[i][j];
        part += v[i][j] * (i + j);
      }
    sum += part;
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) present(u, v)
    for (int i = 2; i < N - 2; i++)
      for (int j = 0; j < M; j++) u[i][j] = v[i][j] % 97;
  }
#pragma acc exit data copyout(u) delete(v)
#pragma xmp loop on t[i][j] reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += u[i][j];
#pragma xmp task on p[0]
  printf("sum %ld\n", sum);
  return 0;
}
