/* Operations: running what is made by the functions of halo.h, transfer.h, broadcast.h, collectives.h,
 * collective_layouts.h and neighbours.h, and looking at it.
 *
 * Options of every operation: `path` is "auto", a path, a family, or several with commas between them; `engine` is
 * "auto", "inline", "thread" or, on GPUs, "stream"; null is "auto". `blocks` is the number of thread blocks that an
 * exchange on a GPU may take, 0: as many as make it faster; ranks may differ. */
#ifndef TASUKI_C_OPERATION_H
#define TASUKI_C_OPERATION_H

#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* Begins the next epoch. Local; fails if the operation is active. */
tasuki_status tasuki_start(tasuki_operation operation);
/* Does what can be done now. `ended`: not 0 if the epoch started last has ended on this rank. Local; does not block. */
tasuki_status tasuki_test(tasuki_operation operation, int* ended);
/* Returns when the epoch started last has ended on this rank; at once if none is active. Fails if a rank that it
 * depends on has died, or at the context's deadline, naming rank, operation and command. */
tasuki_status tasuki_wait(tasuki_operation operation);
/* For operations on GPU memory: the epoch becomes work of `stream` (a cudaStream_t; null: the default stream), in its
 * order and without waiting on the host. run is start and wait in one. Legal while the stream is being captured. */
tasuki_status tasuki_stream_start(tasuki_operation operation, void* stream);
tasuki_status tasuki_stream_wait(tasuki_operation operation, void* stream);
tasuki_status tasuki_stream_run(tasuki_operation operation, void* stream);
tasuki_status tasuki_active(tasuki_operation operation, int* active);
/* Frees everything of the operation. Local; fails while it is active. */
tasuki_status tasuki_operation_free(tasuki_operation* operation);

/* ---- Looking --------------------------------------------------------------------------------------------------- */

/* The pieces of this rank, a table: bytes, pattern, path, predicted time, and why others were not taken. Local. */
tasuki_status tasuki_explain(tasuki_operation operation, char** text);
/* This rank's plan, for people and as JSON; both can be read back exactly (plan.hpp). Local. */
tasuki_status tasuki_plan_text(tasuki_operation operation, char** text);
tasuki_status tasuki_plan_json(tasuki_operation operation, char** json);
/* Bytes that the plan and its lowered form occupy on this rank. Local. */
tasuki_status tasuki_plan_memory(tasuki_operation operation, int64_t* bytes);
/* Verifies the plans of all ranks together for `epochs` epochs (0: enough to find every hazard). `ok`: not 0 if nothing
 * was found; `report`, which may be null, gets a text of what was. A problem is no failure of the call. Collective. */
tasuki_status tasuki_verify(tasuki_operation operation, int epochs, int* ok, char** report);
/* The same for `count` plans, rank by rank, each as text or JSON, from anywhere. Local, without MPI. */
tasuki_status tasuki_verify_plans(int count, const char* const* plans, int epochs, int* ok, char** report);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
