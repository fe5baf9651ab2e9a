/* GPUs: which one a rank uses, streams beside each other, and captured work. */
#ifndef TASUKI_C_GPU_H
#define TASUKI_C_GPU_H

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* Why this process cannot use a GPU; empty if it can. Local. */
tasuki_status tasuki_why_no_gpu(char** why);
/* Settles which GPU this rank uses, and makes it the current one (device.hpp). Collective; fails on every rank if one
 * has no GPU. */
tasuki_status tasuki_use_gpu(tasuki_context context, int* ordinal);
/* Waits on the host for the work in `stream`; fails if an exchange in it has. Local. */
tasuki_status tasuki_synchronize(tasuki_context context, void* stream);

/* A second stream, so that an exchange overlaps with computation: call branch, put the exchange into the stream that it
 * gives and the interior's kernel into the first stream, then call join. All calls are local and legal while the stream
 * is being captured. */
tasuki_status tasuki_fork_create(tasuki_fork* fork);
tasuki_status tasuki_fork_branch(tasuki_fork fork, void* from, void** stream);
tasuki_status tasuki_fork_join(tasuki_fork fork, void* into);
tasuki_status tasuki_fork_free(tasuki_fork* fork);

/* Captures what `enqueue(data)` puts into `stream` (any but the default), to be replayed by launch (graph.hpp). A
 * status other than TASUKI_OK from `enqueue` ends the capture and is returned. Local. */
typedef int (*tasuki_enqueue)(void* data);
tasuki_status tasuki_graph_create(void* stream, tasuki_enqueue enqueue, void* data, tasuki_graph* graph);
tasuki_status tasuki_graph_launch(tasuki_graph graph, void* stream);
tasuki_status tasuki_graph_free(tasuki_graph* graph);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
