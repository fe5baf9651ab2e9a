/* A program that forgets to free a grid, and so never ends MPI. */
#include <tasuki/tasuki.h>

int main(int argc, char** argv) {
  tasuki_context ranks;
  tasuki_grid grid;
  tasuki_field u;
  const int64_t cells[] = {20, 30};
  if (tasuki_init(&argc, &argv, &ranks) != TASUKI_OK) return 1;
  if (tasuki_grid_create(ranks, 2, cells, NULL, &grid) != TASUKI_OK) return 1;
  if (tasuki_field_create(grid, TASUKI_F64, NULL, &u) != TASUKI_OK) return 1;
  if (tasuki_field_free(&u) != TASUKI_OK) return 1;
  return tasuki_context_free(&ranks) != TASUKI_OK;
}
