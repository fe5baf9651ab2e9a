/* Kernels of every kind on distributed arrays: square brackets, one to three dimensions, offsets, steps, reductions. */
#include <stdio.h>

#define N 37
#define M 21
#define L 5
#define P(i, j) plane[i][j]

typedef struct {
  int a;
  double b;
} Pair;

enum { LIMIT = 7 };

#pragma xmp nodes n[*]
#pragma xmp template t[N][M]
#pragma xmp distribute t[block][*] onto n
static int line[N], plane[N][M], cube[L][N][M];
static double wide[N];
#pragma xmp align line[i] with t[i][*]
#pragma xmp align wide[i] with t[i][*]
#pragma xmp align plane[i][j] with t[i][j]
#pragma xmp align cube[*][i][j] with t[i][j]
#pragma xmp shadow line[2:1]
#pragma xmp shadow plane[1][0]

#pragma acc routine seq
static int clipped(int x) { return x > LIMIT ? x % LIMIT : x; }

static void fill(int seed) {
#pragma xmp loop on t[i][*]
  for (int i = 0; i < N; i++) {
    line[i] = i * seed;
    wide[i] = i;
    for (int j = 0; j < M; j++) {
      plane[i][j] = i * 3 + j * seed;
      for (int k = 0; k < L; k++) cube[k][i][j] = k;
    }
  }
}

static double *wide_copy(void) {
  static double memory[N];
  for (int i = 0; i < N; i++) memory[i] = 0.5 * i;
  return memory;
}

static int total(void) {
  int sum = 0;
#pragma xmp loop on t[i][*] reduction(+ : sum)
  for (int i = 0; i < N; i++) {
    sum += line[i] * (i + 1) + (int)wide[i];
    for (int j = 0; j < M; j++) {
      sum += plane[i][j] * (j + 1);
      for (int k = 0; k < L; k++) sum += cube[k][i][j];
    }
  }
  return sum;
}

int main(void) {
  for (int round = 1; round <= 3; round++) {
    fill(round);
    int sum = 5, most = -1, least = 1 << 20, all = 1;
    double ends = 0;
    Pair pair = {round, 0.5};
    const int weights[4] = {1, 2, 3, 4};
    int counts[LIMIT] = {0};
    long double_count = 0;
#pragma acc data copy(plane, cube) copyin(weights) copy(line[0:N])
    {
#pragma xmp reflect(line) acc
#pragma xmp loop on t[i][*]
#pragma acc parallel loop present(line) copy(wide) firstprivate(pair)
      for (int i = 2; i < N - 1; i += 3) wide[i] = line[i - 2] + line[i + 1] * pair.b + pair.a;
#pragma acc parallel loop collapse(2) reduction(+ : sum) reduction(max : most) reduction(min : least) vector_length(64)
#pragma xmp loop on t[i][j] reduction(+ : sum) reduction(max : most) reduction(min : least)
      for (int i = 1; i < N; i++)
        for (int j = 0; j <= M - 2; j++) {
          if (P(i, j) % 2) continue;
          sum += P(i, j);
          most = P(i, j) > most ? P(i, j) : most;
          least = P(i, j) < least ? P(i, j) : least;
        }
#pragma xmp loop on t[i][j]
#pragma acc parallel loop collapse(2) async(1) gang vector
      for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
          int own[2] = {i, j};
          for (int k = 0; k < L; k++) {
            cube[k][i][j] += own[0] * weights[k % 4] + clipped(own[1]);
            if (k == 3) break;
          }
        }
#pragma acc wait(1)
#pragma acc kernels
      {
#pragma xmp loop on t[i][*]
#pragma acc loop independent
        for (int i = 0; i < N; i++)
#pragma acc loop seq
          for (int j = 1; j < M; j++) plane[i][j] += plane[i][j - 1] % 5;
      }
#pragma acc update self(plane[0:N][0:M])
    }
    /* On every node the same. */
    int hits[N];
    for (int i = 0; i < N; i++) hits[i] = i * round;
    double *const heap = wide_copy();
#pragma acc enter data copyin(hits, heap[0:N]) create(counts)
#pragma acc update device(counts)
#pragma acc parallel loop present(heap) reduction(+ : double_count) reduction(&& : all)
    for (int i = 0; i < N; i++) {
      heap[i] += hits[i];
      double_count += 2;
      all = all && hits[i] >= 0;
#pragma acc atomic update
      counts[hits[i] % LIMIT] += 1;
#pragma acc atomic
      counts[0]++;
    }
#pragma acc serial present(heap, hits)
    for (int i = 1; i < N; i++) heap[i] += heap[i - 1];
#ifdef _XCALABLEMP
    heap[N - 1] = -1; /* the GPU has another one */
#endif
#pragma acc exit data copyout(counts, heap[0:N]) delete(hits)
    ends = heap[N - 1];
    const int result = total();
#pragma xmp task on n[0]
    {
      printf("%d %d %d %d %d %ld %g\n", result, sum, most, least, all, double_count, ends);
      for (int i = 0; i < LIMIT; i++) printf(" %d", counts[i]);
      printf("\n");
    }
  }
  return 0;
}
