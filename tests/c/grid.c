/* Grids: splits, cuts, boxes, coordinates. */
#include "check.h"

static void check_split(tasuki_context ranks, int rank, int size) {
  const int64_t extents[] = {13, 7, 5};
  const int split[] = {1, size, 1};
  const int periodic[] = {0, 1, 0};
  tasuki_grid_options options = TASUKI_GRID_OPTIONS_INIT;
  options.split = split;
  options.periodic = periodic;
  tasuki_grid grid = NULL;
  CHECK_OK(tasuki_grid_create(ranks, 3, extents, &options, &grid));
  tasuki_grid_info info = {.size = sizeof info};
  CHECK_OK(tasuki_grid_get_info(grid, &info));
  CHECK(info.ndims == 3 && info.extents[0] == 13 && info.extents[1] == 7 && info.extents[2] == 5);
  CHECK(info.split[1] == size && info.split[0] == 1 && info.periodic[1] && !info.periodic[0] && !info.periodic[2]);
  int64_t cells = 0;
  for (int r = 0; r < size; ++r) {
    tasuki_box box;
    int coords[3] = {-1, -1, -1};
    int back = -1;
    int64_t cut = -1;
    CHECK_OK(tasuki_grid_owned(grid, r, &box));
    cells += box.hi[1] - box.lo[1];
    if (r == rank) CHECK(memcmp(&box, &info.owned, sizeof box) == 0);
    CHECK_OK(tasuki_grid_coords(grid, r, coords));
    CHECK(coords[0] == 0 && coords[1] == r && coords[2] == 0);
    CHECK_OK(tasuki_grid_rank_at(grid, coords, &back));
    CHECK(back == r);
    CHECK_OK(tasuki_grid_cut(grid, 1, r, &cut));
    CHECK(cut == box.lo[1]);
  }
  CHECK(cells == 7);
  tasuki_box box;
  int nobody = 0;
  int64_t cut = 0;
  const int nowhere[] = {1, 0, 0};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "rank", tasuki_grid_owned(grid, size, &box));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "coord", tasuki_grid_rank_at(grid, nowhere, &nobody));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "dimension", tasuki_grid_cut(grid, 3, 0, &cut));
  CHECK_OK(tasuki_grid_free(&grid));
  CHECK(grid == NULL);
}

/* All cells on the last rank. */
static void check_cuts(tasuki_context ranks, int rank, int size) {
  int64_t places[64] = {0};
  places[size] = 9;
  const int64_t* cuts[] = {places};
  const int counts[] = {size + 1};
  tasuki_grid_options options = TASUKI_GRID_OPTIONS_INIT;
  options.cuts = cuts;
  options.cut_counts = counts;
  const int64_t nine = 9;
  tasuki_grid grid = NULL;
  tasuki_grid_info info = {.size = sizeof info};
  CHECK_OK(tasuki_grid_create(ranks, 1, &nine, &options, &grid));
  CHECK_OK(tasuki_grid_get_info(grid, &info));
  CHECK(info.owned.hi[0] - info.owned.lo[0] == (rank == size - 1 ? 9 : 0));
  CHECK_OK(tasuki_grid_free(&grid));
  options.cut_counts = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "cut_counts' is null", tasuki_grid_create(ranks, 1, &nine, &options, &grid));
  const int minus = -1;
  options.cut_counts = &minus;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "cut_counts[0] is -1", tasuki_grid_create(ranks, 1, &nine, &options, &grid));
  CHECK(grid == NULL);
}

void test_grid(tasuki_context ranks) {
  int rank = 0;
  int size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  check_split(ranks, rank, size);
  check_cuts(ranks, rank, size);
  tasuki_grid grid = NULL;
  const int64_t extents[] = {rank == 1 ? 12 : 13, 7, 5};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'ndims' is 8", tasuki_grid_create(ranks, 8, extents, NULL, &grid));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'extents' is null", tasuki_grid_create(ranks, 3, NULL, NULL, &grid));
  if (size > 1)
    CHECK_FAILS(TASUKI_DISAGREEMENT, "differs between ranks", tasuki_grid_create(ranks, 3, extents, NULL, &grid));
  CHECK(grid == NULL);
}
