/* Laplace's equation on a square with a hot side, in C: Jacobi's iteration, the halo exchanged while the interior is
 * computed. Run it on any number of ranks; the result is bit for bit that of the serial run, which every rank makes
 * itself to compare. */
#include <stdio.h>
#include <stdlib.h>
#include <tasuki/tasuki.h>

enum { ROWS = 45, COLUMNS = 37, STEPS = 60 };

static void check(int status) {
  if (status == TASUKI_OK) return;
  fprintf(stderr, "%s\n", tasuki_last_error());
  exit(EXIT_FAILURE);
}

/* One relaxation of a box of cells; a row of the array has `stride` cells. */
struct step {
  const double* old;
  double* new;
  int64_t stride;
};
static void relax(const tasuki_box* box, void* data) {
  const struct step* s = data;
  for (int64_t i = box->lo[0]; i < box->hi[0]; ++i)
    for (int64_t j = box->lo[1]; j < box->hi[1]; ++j) {
      const double* c = s->old + i * s->stride + j;
      s->new[i * s->stride + j] = 0.25 * ((c[-s->stride] + c[s->stride]) + (c[-1] + c[1]));
    }
}

static double serial[2][(ROWS + 2) * (COLUMNS + 2)];

int main(int argc, char** argv) {
  tasuki_context ranks;
  check(tasuki_init(&argc, &argv, &ranks)); /* starts MPI */
  tasuki_grid grid;
  check(tasuki_grid_create(ranks, 2, (const int64_t[]){ROWS, COLUMNS}, NULL, &grid));
  tasuki_field_options two = TASUKI_FIELD_OPTIONS_INIT;
  two.copies = 2; /* old and new, one cell of shadow */
  tasuki_field u;
  check(tasuki_field_create(grid, TASUKI_F64, &two, &u));
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  options.corners = 0;     /* a five-point stencil */
  options.alternating = 1; /* we swap once between two starts */
  tasuki_operation halo;
  check(tasuki_halo_create(1, &u, NULL, &options, &halo));

  tasuki_field_info local = {.size = sizeof local};
  check(tasuki_field_get_info(u, &local));
  const int64_t row = local.strides[0], last = local.extents[0] - 1;
  for (int copy = 0; copy < 2; ++copy) { /* the side below row 0 is hot in both copies: it is nobody's to compute */
    void* cells;
    check(tasuki_field_copy_data(u, copy, &cells));
    if (local.owned.lo[0] == 0 && last > 0)
      for (int64_t j = 0; j < local.extents[1]; ++j) ((double*)cells)[j] = 1.0 + (double)(local.owned.lo[1] + j);
    for (int j = 0; j < COLUMNS + 2; ++j) serial[copy][j] = 1.0 + j;
  }
  check(tasuki_start(halo));
  check(tasuki_wait(halo));
  const tasuki_width one = tasuki_width_of(1);
  const tasuki_box whole = {2, {1, 1}, {ROWS + 1, COLUMNS + 1}};
  for (int step = 0; step < STEPS; ++step) {
    void *old, *new;
    check(tasuki_field_data(u, &old));
    check(tasuki_field_next(u, &new));
    check(tasuki_field_swap(u));
    check(tasuki_overlap(halo, u, &one, relax, &(struct step){old, new, row}));
    relax(&whole, &(struct step){serial[step % 2], serial[(step + 1) % 2], COLUMNS + 2});
  }

  void* cells;
  check(tasuki_field_data(u, &cells));
  int64_t wrong = 0;
  for (int64_t i = local.local_owned.lo[0]; i < local.local_owned.hi[0]; ++i)
    for (int64_t j = local.local_owned.lo[1]; j < local.local_owned.hi[1]; ++j)
      wrong += ((const double*)cells)[i * row + j] !=
               serial[STEPS % 2][(local.owned.lo[0] + i) * (COLUMNS + 2) + local.owned.lo[1] + j];
  int rank;
  check(tasuki_rank(ranks, &rank));
  printf("rank %d: %lld cells differ from the serial run\n", rank, (long long)wrong);
  check(tasuki_operation_free(&halo));
  check(tasuki_field_free(&u));
  check(tasuki_grid_free(&grid));
  check(tasuki_context_free(&ranks)); /* ends MPI */
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
