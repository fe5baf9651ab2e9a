/* Neighbour collectives: every rank exchanges blocks with the ranks that it names. */
#ifndef TASUKI_C_NEIGHBOURS_H
#define TASUKI_C_NEIGHBOURS_H

#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/transfer.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* Whom a rank sends to and whom it hears from, in the order of its blocks; or, where `grid` is not null, the two beside
 * it in each dimension of the grid of ranks, the lower one first, where there is one: 2 * ndims blocks each way
 * (neighbours.hpp). For every time that rank a names b in `to`, b names a in `from`. */
typedef struct tasuki_neighbours {
  int to_count;
  const int* to;
  int from_count;
  const int* from;
  tasuki_grid grid;
} tasuki_neighbours;

/* `in`, `count` elements, to each neighbour; `out` gets a block of each, one after the other, of `count` elements, or,
 * where the list is not null, of receive_counts[i]. Memory of the host or of GPUs, one kind on all ranks. Collective.
 */
tasuki_status tasuki_neighbour_allgather_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                                const void* in, void* out, int64_t count, const int64_t* receive_counts,
                                                int type, const tasuki_transfer_options* options,
                                                tasuki_operation* allgather);
/* `in` holds a block for each neighbour, `out` gets one of each, one after the other: of `count` elements each, or,
 * where both lists are given, of send_counts[i] and receive_counts[i]. Memory as above. Collective. */
tasuki_status tasuki_neighbour_alltoall_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                               const void* in, void* out, int64_t count, const int64_t* send_counts,
                                               const int64_t* receive_counts, int type,
                                               const tasuki_transfer_options* options, tasuki_operation* alltoall);

/* The same with layouts (see collective_layouts.h): for the block that goes to all neighbours, and for that of each in
 * `from` (of a grid: 2 * ndims). Collective. */
tasuki_status tasuki_neighbour_allgather_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                        const void* in, tasuki_layout in_layout, void* out,
                                                        const tasuki_layout* out_layouts,
                                                        const tasuki_transfer_options* options,
                                                        tasuki_operation* allgather);
/* As MPI_Neighbor_alltoallw: a layout for the block of each neighbour in `to`, and in `from`. Collective. */
tasuki_status tasuki_neighbour_alltoall_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                       const void* in, const tasuki_layout* in_layouts, void* out,
                                                       const tasuki_layout* out_layouts,
                                                       const tasuki_transfer_options* options,
                                                       tasuki_operation* alltoall);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
