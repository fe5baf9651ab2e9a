/* Assignments of sections, reductions with locations, and reductions and broadcasts with async, of what is on the GPU. In
 * square brackets. */
#include <stdio.h>

#define N 29
#define M 17

#pragma xmp nodes p[*]
#pragma xmp template rows[N][M]
#pragma xmp template columns[N][M]
#pragma xmp distribute rows[block][*] onto p
#pragma xmp distribute columns[*][block] onto p
static long a[N][M], b[N][M], top[M];
#pragma xmp align a[i][j] with rows[i][j]
#pragma xmp align b[i][j] with columns[i][j]

static long moves(void) {
  long sum = 3, low = 4, where = -1, best = 0, told = 7;
#pragma acc data copyin(a) copyout(b) create(top)
  {
#pragma xmp loop on columns[i][j]
#pragma acc parallel loop collapse(2) present(b)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) b[i][j] = -i;
#ifdef _XCALABLEMP
#pragma xmp gmove acc
    b[1:N - 2][:] = a[1:N - 2][:];
#pragma xmp gmove acc(top, b)
    top[:] = b[N / 2][:];
#pragma xmp gmove async(4) acc
    b[0][0:5] = a[2][3:5];
#pragma xmp wait_async(4)
#else
    for (int i = 1; i < N - 1; i++)
      for (int j = 0; j < M; j++) b[i][j] = a[i][j];
    for (int j = 0; j < M; j++) top[j] = b[N / 2][j];
    for (int j = 0; j < 5; j++) b[0][j] = a[2][3 + j];
#endif
#pragma acc data copy(sum, best, where, told) copyout(low)
    {
#pragma acc serial present(top, sum, best, where, low)
      {
        for (int j = 0; j < M; j++) sum += top[j];
        best = top[3];
        where = top[3] * 2;
        low = 9;
      }
#pragma xmp reduction(firstmax : best / where /) acc
#pragma xmp reduction(max : sum) async(5) acc
#pragma xmp bcast(told) from p[0] async(6) acc
#pragma xmp wait_async(5, 6)
#pragma xmp reduction(min : low) acc
    }
  }
  return sum + 1000 * best + 77 * where + told + low;
}

int main(void) {
  long result = 0;
#pragma xmp loop on rows[i][j]
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) a[i][j] = (i * 31 + j * 7) % 57;
  result = moves();
#pragma xmp loop on columns[i][j] reduction(+ : result)
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) result += b[i][j] * (i + 3 * j);
#pragma xmp task on p[0]
  printf("result %ld\n", result);
  return 0;
}
