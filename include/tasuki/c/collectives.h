/* Collectives of contiguous blocks but broadcasts. */
#ifndef TASUKI_C_COLLECTIVES_H
#define TASUKI_C_COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* An operator of the caller's own: left[i] = left[i] op right[i], for `count` elements of the reduction's type.
 * Associative. The elements are as aligned as the caller's memory and layouts are. It is called by the thread that
 * drives the operation, any number of times for parts of the vector, and must not use Tasuki. Host memory only. */
typedef void (*tasuki_combine)(const void* right, void* left, int64_t count, void* data);

typedef struct tasuki_collective_options {
  size_t size;
  const char* path;
  const char* engine;
  int blocks;
  const char* algorithm;  /* by name (docs/collectives.md); null: "auto" */
  int trees;              /* parts of the message, each with a tree of its own; of "trees" and "torus" */
  int arity;              /* children of an inner rank of a tree; of "trees" and "torus" */
  int64_t chunk;          /* bytes that travel as one step of a pipeline; of "hierarchical", "collect" and the allreduce
                           * "doubling" too. 0 in these three: chosen by cost */
  int ordered;            /* reductions combine in rank order, whatever the algorithm */
  int does_not_commute;   /* the operator below: makes the reduction `ordered` */
  tasuki_combine combine; /* for TASUKI_OWN */
  const char* combine_name; /* what plans and errors call it; the same on all ranks */
  void* combine_data;       /* is handed to `combine` */
  int where;                /* of a barrier, which has no memory to tell: TASUKI_HOST or TASUKI_DEVICE */
} tasuki_collective_options;
#define TASUKI_COLLECTIVE_OPTIONS_INIT \
  { sizeof(tasuki_collective_options), NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, TASUKI_HOST }

/* Stands for a buffer where a rank works in place. Of allreduce, scan, exscan, reduce-scatter, allgather and alltoall:
 * for `in`, on all ranks; what `in` would hold is then in `out` (allgather: each rank's block where it ends;
 * reduce-scatter: all of it, and the result is at the beginning). On the root: for `in` of reduce and gather, for `out`
 * of scatter. */
#define TASUKI_IN_PLACE ((void*)(intptr_t)-1)

/* All of these: made by all ranks of the context with the same arguments. `in` is only read, `out` only written; they
 * may not overlap, are memory of the host or of GPUs, one kind on all ranks, and stay where they are as long as the
 * operation. Nothing of them is touched before the first start. `type` is a tasuki_type, `op` a tasuki_op; counts are
 * elements of `type` (TASUKI_BYTES: bytes) and may be 0. Blocks of several ranks lie one after the other, in rank
 * order: of `count` elements each, or, where `counts` is not null, of counts[r] for rank r (an entry a rank, the same
 * on all ranks; `count` is not looked at). Collective. */

/* `out` = all ranks' `in`, combined element by element, on every rank. */
tasuki_status tasuki_allreduce_create(tasuki_context context, const void* in, void* out, int64_t count, int type,
                                      int op, const tasuki_collective_options* options, tasuki_operation* allreduce);
/* The same on rank `root` only; `out` of other ranks is not looked at. */
tasuki_status tasuki_reduce_create(tasuki_context context, int root, const void* in, void* out, int64_t count, int type,
                                   int op, const tasuki_collective_options* options, tasuki_operation* reduce);
/* `in` holds a block for every rank; rank r gets block r of all ranks, combined. */
tasuki_status tasuki_reduce_scatter_create(tasuki_context context, const void* in, void* out, int64_t count,
                                           const int64_t* counts, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce_scatter);
/* `out` = the ranks' blocks, on every rank. */
tasuki_status tasuki_allgather_create(tasuki_context context, const void* in, void* out, int64_t count,
                                      const int64_t* counts, int type, const tasuki_collective_options* options,
                                      tasuki_operation* allgather);
/* The same on rank `root` only; `out` of other ranks is not looked at. */
tasuki_status tasuki_gather_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                   const int64_t* counts, int type, const tasuki_collective_options* options,
                                   tasuki_operation* gather);
/* `in` of rank `root` holds a block for every rank; rank r gets block r. `in` of other ranks is not looked at. */
tasuki_status tasuki_scatter_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                    const int64_t* counts, int type, const tasuki_collective_options* options,
                                    tasuki_operation* scatter);
/* `in` holds a block for every rank, `out` gets one of every rank: of rank r, its block for this one. `count` elements
 * each; or, where both lists are given, send_counts[r] go to rank r and receive_counts[r] come from it, which must fit
 * what rank r says. */
tasuki_status tasuki_alltoall_create(tasuki_context context, const void* in, void* out, int64_t count,
                                     const int64_t* send_counts, const int64_t* receive_counts, int type,
                                     const tasuki_collective_options* options, tasuki_operation* alltoall);
/* `out` of rank r = `in` of ranks 0 to r, combined in rank order. */
tasuki_status tasuki_scan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                 const tasuki_collective_options* options, tasuki_operation* scan);
/* `out` of rank r = `in` of ranks 0 to r - 1, combined in rank order; that of rank 0 stays as it is. */
tasuki_status tasuki_exscan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                   const tasuki_collective_options* options, tasuki_operation* exscan);
/* An epoch ends on a rank when all ranks have started it. With option `where` = TASUKI_DEVICE, the same on all ranks,
 * it is a barrier of streams: what a rank has put into its stream after it runs when all ranks' streams have come as
 * far. */
tasuki_status tasuki_barrier_create(tasuki_context context, const tasuki_collective_options* options,
                                    tasuki_operation* barrier);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
