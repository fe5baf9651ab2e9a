/* Reflects on the GPU that the translator overlaps with the kernel after them: two arrays, corners, a queue, a sum, and
 * one that it must not overlap. In round brackets. */
#include <stdio.h>

#define N 19
#define M 14

#pragma xmp nodes p(*)
#pragma xmp template t(0 : M - 1, 0 : N - 1)
#pragma xmp distribute t(*, block) onto p
static int u[N][M], v[N][M], w[N];
#pragma xmp align[i][j] with t(j, i)::u, v
#pragma xmp align w[i] with t(*, i)
#pragma xmp shadow u[2 : 1][0]
#pragma xmp shadow w[1]

int main(void) {
  long sum = 0;
#pragma xmp loop on t(j, i)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) u[i][j] = (i * 17 + j * 5) % 41;
#pragma xmp loop on t(*, i)
  for (int i = 0; i < N; i++) w[i] = 3 * i;
#pragma acc enter data copyin(u, w) create(v)
  for (int step = 0; step < 5; step++) {
    long part = 0;
#pragma xmp reflect(u) acc
#pragma xmp reflect(w) acc
#pragma xmp loop on t(j, i) reduction(+ : part)
#pragma acc parallel loop reduction(+ : part) async(3)
    for (int i = 2; i < N - 1; i++)
#pragma acc loop
      for (int j = 0; j < M; j++) {
        v[i][j] = u[i - 2][j] + u[i + 1][j] - u[i][j] + w[i - 1] * w[i + 1];
        part += v[i][j] * (i + j);
      }
#pragma acc wait
    sum += part;
#pragma xmp loop on t(j, i)
#pragma acc parallel loop collapse(2) present(u, v)
    for (int i = 2; i < N - 1; i++)
      for (int j = 0; j < M; j++) u[i][j] = v[i][j] % 97;
#pragma xmp reflect(w) acc
#pragma acc update self(w)
#pragma xmp loop on t(*, i)
    for (int i = 0; i < N; i++) w[i] += i % 3;
#pragma acc update device(w)
  }
#pragma acc exit data copyout(u) delete (v, w)
#pragma xmp loop on t(j, i) reduction(+ : sum)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) sum += u[i][j];
#pragma xmp task on p(1)
  printf("sum %ld\n", sum);
  return 0;
}
