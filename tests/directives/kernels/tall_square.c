/* Nests with more rows and planes than a launch has blocks along them, and reductions over many blocks, whose results
 * are combined in several steps. In square brackets. */
#include <stdio.h>

#define ROWS 262149
#define PLANES 65537

#pragma xmp nodes p[*]
#pragma xmp template rows[ROWS][3]
#pragma xmp template planes[PLANES][2][3]
#pragma xmp distribute rows[block][*] onto p
#pragma xmp distribute planes[block][*][*] onto p
static int u[ROWS][3], v[PLANES][2][3];
#pragma xmp align u[i][j] with rows[i][j]
#pragma xmp align v[i][j][k] with planes[i][j][k]

int main(void) {
  long sum = 0, kept = 1;
  int most = -1, least = 1 << 30;
#pragma acc enter data create(u, v)
#pragma xmp loop on rows[i][j]
#pragma acc parallel loop collapse(2) present(u)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < 3; j++) u[i][j] = (int)(i * 7919L % 65521) - j;
#pragma xmp loop on planes[i][j][k]
#pragma acc parallel loop collapse(3) present(v)
  for (int i = 0; i < PLANES; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) v[i][j][k] = i - 7 * j + k;
#pragma xmp loop on rows[i][j] reduction(+ : sum) reduction(max : most)
#pragma acc parallel loop collapse(2) present(u) reduction(+ : sum) reduction(max : most)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < 3; j++) {
      sum += (long)u[i][j] * (j + 1);
      most = u[i][j] > most ? u[i][j] : most;
    }
#pragma acc data copy(kept)
  {
#pragma xmp loop on planes[i][j][k] reduction(+ : kept)
#pragma acc parallel loop collapse(3) present(v, kept) reduction(+ : kept)
    for (int i = 0; i < PLANES; i++)
      for (int j = 0; j < 2; j++)
        for (int k = 0; k < 3; k++) kept += v[i][j][k] ^ j;
  }
#pragma xmp loop on planes[i][j][k] reduction(min : least)
#pragma acc parallel loop collapse(3) present(v) reduction(min : least) vector_length(1024)
  for (int i = 0; i < PLANES; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) least = v[i][j][k] < least ? v[i][j][k] : least;
#pragma acc exit data copyout(u, v)
#pragma xmp loop on rows[i][j] reduction(+ : sum)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < 3; j++) sum += u[i][j] & 5;
#pragma xmp loop on planes[i][j][k] reduction(+ : sum)
  for (int i = 0; i < PLANES; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) sum += v[i][j][k] & 3;
#pragma xmp task on p[0]
  printf("sum %ld kept %ld most %d least %d\n", sum, kept, most, least);
  return 0;
}
