/* Collectives of memory that is not contiguous: what collectives.h has, with layouts for counts. */
#ifndef TASUKI_C_COLLECTIVE_LAYOUTS_H
#define TASUKI_C_COLLECTIVE_LAYOUTS_H

#include "tasuki/c/collectives.h"
#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* All of these: layouts say which bytes the blocks are: of a block, counted from `in` or `out`, or for each rank
 * (`in_layouts`, `out_layouts`: an entry a rank). A layout may differ from rank to rank, and from that of the block
 * that it meets, but both name equally many bytes; in reductions whole elements of `type`. Memory that is written has
 * no byte named twice. What is wrong on one rank fails on all; sizes that do not fit, with the ranks and blocks that
 * differ.
 *
 * A side that is not looked at may have a null layout, or a null list: `out` of reduce and gather and `in` of scatter
 * but on the root, and what TASUKI_IN_PLACE stands for. In place the layouts of `out` hold; of reduce-scatter those of
 * `in`, relative to `out`, and the result is where the first of these bytes are. All ranks use layouts, or none does.
 * They may be freed afterwards. Collective. */
tasuki_status tasuki_allreduce_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, tasuki_layout out_layout, int type, int op,
                                              const tasuki_collective_options* options, tasuki_operation* allreduce);
tasuki_status tasuki_reduce_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce);
/* The blocks have the same sizes on all ranks. */
tasuki_status tasuki_reduce_scatter_create_layouts(tasuki_context context, const void* in,
                                                   const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                                   int type, int op, const tasuki_collective_options* options,
                                                   tasuki_operation* reduce_scatter);
tasuki_status tasuki_allgather_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, const tasuki_layout* out_layouts,
                                              const tasuki_collective_options* options, tasuki_operation* allgather);
tasuki_status tasuki_gather_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, const tasuki_layout* out_layouts,
                                           const tasuki_collective_options* options, tasuki_operation* gather);
tasuki_status tasuki_scatter_create_layouts(tasuki_context context, int root, const void* in,
                                            const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                            const tasuki_collective_options* options, tasuki_operation* scatter);
/* As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own. */
tasuki_status tasuki_alltoall_create_layouts(tasuki_context context, const void* in, const tasuki_layout* in_layouts,
                                             void* out, const tasuki_layout* out_layouts,
                                             const tasuki_collective_options* options, tasuki_operation* alltoall);
tasuki_status tasuki_scan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                         tasuki_layout out_layout, int type, int op,
                                         const tasuki_collective_options* options, tasuki_operation* scan);
tasuki_status tasuki_exscan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                           tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* exscan);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
