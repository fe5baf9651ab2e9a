/* Grids: an array of cells, cut into boxes, one a rank. */
#ifndef TASUKI_C_GRID_H
#define TASUKI_C_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_grid_options {
  size_t size;
  const int* split;    /* ranks in each dimension, 0: chosen by Tasuki; null: all are */
  const int* periodic; /* not 0: periodic, an entry a dimension; null: none is */
  /* Explicit cuts: for dimension d, null or cut_counts[d] ascending indices from 0 to the extent. Null: none. */
  const int64_t* const* cuts;
  const int* cut_counts;
  int reorder; /* not 0: Tasuki chooses which rank has which box, so that large faces stay inside islands */
} tasuki_grid_options;
#define TASUKI_GRID_OPTIONS_INIT \
  { sizeof(tasuki_grid_options), NULL, NULL, NULL, NULL, 0 }

/* A grid of `ndims` (1 to 7) dimensions over all ranks of the context. Collective; the same arguments on all ranks. */
tasuki_status tasuki_grid_create(tasuki_context context, int ndims, const int64_t* extents,
                                 const tasuki_grid_options* options, tasuki_grid* grid);
tasuki_status tasuki_grid_free(tasuki_grid* grid);

typedef struct tasuki_grid_info {
  size_t size;
  int32_t ndims;
  int32_t number; /* of this grid among the context's grids and fields */
  int64_t extents[TASUKI_MAX_DIMS];
  int32_t split[TASUKI_MAX_DIMS];
  int32_t periodic[TASUKI_MAX_DIMS];
  tasuki_box owned; /* this rank's cells, global indices */
} tasuki_grid_info;
/* Local. `info->size` says how much of the struct the caller knows: sizeof(tasuki_grid_info). */
tasuki_status tasuki_grid_get_info(tasuki_grid grid, tasuki_grid_info* info);
/* The cells of `rank`, global indices. Local. */
tasuki_status tasuki_grid_owned(tasuki_grid grid, int rank, tasuki_box* box);
/* Where `rank` is in the grid of ranks: ndims numbers. Local. */
tasuki_status tasuki_grid_coords(tasuki_grid grid, int rank, int* coords);
tasuki_status tasuki_grid_rank_at(tasuki_grid grid, const int* coords, int* rank);
/* First global index of the ranks at `coord` in dimension d; coord = split[d] gives the extent. Local. */
tasuki_status tasuki_grid_cut(tasuki_grid grid, int d, int coord, int64_t* index);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
