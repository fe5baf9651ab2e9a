/* What is on the device, and when: round brackets, a struct in a kernel, pointers, four loops, and updates of sections. */
#include <stdio.h>
#include <stdlib.h>

#define ROWS 13
#define COLUMNS 18

struct scale {
  float by;
  int plus;
};

#pragma xmp nodes n(1, *)
#pragma xmp template t(0 : COLUMNS - 1, 0 : ROWS - 1)
#pragma xmp distribute t(block, block) onto n
float u[ROWS][COLUMNS], v[ROWS][COLUMNS];
#pragma xmp align u[i][j] with t(j, i)
#pragma xmp align v[i][j] with t(j, i)
#pragma xmp shadow v[1][1]
#pragma acc declare create(v)

static int table[3][4], four[2][3][4][5];
static struct scale scales[2] = {{0.5f, 1}, {2.0f, -3}};

static void sweep(struct scale how, const float *factors, int count) {
  float sum = 0;
#pragma xmp reflect(v) orthogonal acc
#pragma xmp loop on t(j, i)
#pragma acc kernels loop collapse(2) present(u, v, factors) private(sum) default(none)
  for (int i = 1; i < ROWS - 1; i++)
    for (int j = 1; j < COLUMNS - 1; j++) {
      sum = v[i - 1][j] + v[i + 1][j] + v[i][j - 1] + v[i][j + 1];
      u[i][j] = sum * how.by * factors[(i + j) % count] + (float)how.plus;
    }
#pragma xmp loop on t(j, i)
#pragma acc parallel loop gang num_gangs(8) async
  for (int i = 1; i < ROWS - 1; i++)
#pragma acc loop vector
    for (int j = 1; j < COLUMNS - 1; j++) v[i][j] = u[i][j] / 4;
#pragma acc wait
}

int main(int argc, char **argv) {
  const int count = 3 + (argc > 9);
  float *factors = malloc(sizeof(float) * (size_t)count);
  (void)argv;
  for (int m = 0; m < count; m++) factors[m] = 1.0f + (float)m / 2;
#pragma xmp loop on t(j, i)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      v[i][j] = (float)((i * 7 + j) % 5);
      u[i][j] = -1;
    }
#pragma acc update device(v)
#pragma acc data copy(u) copyin(factors[0:count])
  {
    for (int step = 0; step < 4; step++) sweep(scales[step % 2], factors, count);
#pragma acc host_data use_device(factors)
    if (factors == NULL) printf("there are no factors\n");
  }
#pragma acc update self(v[0:ROWS][0:COLUMNS])
  for (int round = 0; round < 2; round++) {
#pragma acc parallel loop collapse(4) copy(four)
    for (int a = 0; a < 2; a++)
      for (int b = 0; b < 3; b++)
        for (int c = 0; c < 4; c++)
          for (int d = 0; d < 5; d++) four[a][b][c][d] += ((a * 3 + b) * 4 + c) * 5 + d + round;
#pragma acc parallel loop
    for (int b = 2; b >= 0; b--)
      for (int c = 0; c < 4; c++) {
        table[b][c] += 1;
        for (int d = 0; d < 5; d++) table[b][c] += four[1][b][c][d];
      }
  }
  double sum = 0;
#pragma xmp loop on t(j, i) reduction(+ : sum)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) sum += (double)u[i][j] * (i + 1) + (double)v[i][j] * (j + 1);
#pragma xmp task on n(1, 1)
  {
    printf("%.3f", sum);
    for (int c = 0; c < 4; c++) printf(" %d %d", table[c % 3][c], four[1][2][3][c]);
    printf("\n");
  }
  free(factors);
  return 0;
}
