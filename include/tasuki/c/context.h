/* Contexts: the ranks that work together. */
#ifndef TASUKI_C_CONTEXT_H
#define TASUKI_C_CONTEXT_H

#include <mpi.h>
#include <stddef.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* Over MPI_COMM_WORLD. Starts MPI (MPI_THREAD_MULTIPLE) if nobody has, and then ends it with the context's last holder.
 * `argc` and `argv` may both be null. Collective. */
tasuki_status tasuki_init(int* argc, char*** argv, tasuki_context* context);
/* Over a duplicate of `comm`, which the caller may free afterwards. MPI must have been started. Collective. */
tasuki_status tasuki_context_create(MPI_Comm comm, tasuki_context* context);
/* The same with Fortran's number for a communicator (an INTEGER, or the MPI_VAL of a TYPE(MPI_Comm)). */
tasuki_status tasuki_context_create_f(int comm, tasuki_context* context);
/* A context of these `count` ranks of `context` alone, numbered in this order, with its settings, deadline, islands,
 * prices and GPU; what is done with it involves them and nobody else. Memory of `context` counts as the caller's there.
 * Collective over the ranks named, who pass the same list; others need not call it. A list that is empty, names a rank
 * twice, one that does not exist, or not the caller's fails on this rank at once; lists that differ, on all who are
 * named. If they name different ranks, or one does not come before the deadline, `context` cannot be used again. It is
 * freed like any context, in any order: ranks wait for each other with the last context only. */
tasuki_status tasuki_context_subset(tasuki_context context, int count, const int* ranks, tasuki_context* subset);
/* Frees the handle. The context lives on while a grid, field, operation or memory of it does; freeing the last of them
 * waits for the other ranks, without a deadline. Local otherwise. */
tasuki_status tasuki_context_free(tasuki_context* context);

tasuki_status tasuki_rank(tasuki_context context, int* rank);
tasuki_status tasuki_size(tasuki_context context, int* ranks);
/* Tasuki's duplicate, for the caller's own collectives; MPI_COMM_NULL where ranks are threads. */
tasuki_status tasuki_comm(tasuki_context context, MPI_Comm* comm);
/* Seconds that a wait may take before it fails (30 unless TASUKI_DEADLINE says otherwise), above 0. Local. */
tasuki_status tasuki_deadline(tasuki_context context, double* seconds);
tasuki_status tasuki_set_deadline(tasuki_context context, double seconds);
/* Collective. Fails like a wait if a rank has died. */
tasuki_status tasuki_barrier(tasuki_context context);
/* `bytes` bytes of every rank, in the order of ranks, to `all` (ranks * bytes). `bytes` is the same on all ranks.
 * Collective; fails like a wait if a rank has died. */
tasuki_status tasuki_allgather(tasuki_context context, const void* mine, size_t bytes, void* all);
/* Ranks, hosts and islands, a line each. Local. */
tasuki_status tasuki_describe(tasuki_context context, char** text);

/* Runs `body` in `ranks` threads of this process, each a rank of a context made for them, and returns when all have
 * ended; MPI is not used (threads.hpp). The context is freed when `body` returns; `body` frees everything else that it
 * has made. A body that returns anything but TASUKI_OK has failed: waits on the other ranks end, and this call returns
 * TASUKI_FAILED with that thread's last error. */
typedef int (*tasuki_thread_body)(tasuki_context context, void* data);
tasuki_status tasuki_run_threads(int ranks, tasuki_thread_body body, void* data);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
