/* Memory that the ranks of a host share. */
#ifndef TASUKI_C_MEMORY_H
#define TASUKI_C_MEMORY_H

#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* `bytes` zero-filled bytes (may differ between ranks) that the ranks of the same host can reach: transfers and
 * broadcasts from and to them need no staging. Local. */
tasuki_status tasuki_shared_alloc(tasuki_context context, int64_t bytes, tasuki_memory* memory);
tasuki_status tasuki_memory_data(tasuki_memory memory, void** data);
/* Gives it back; free operations on it first. Local. */
tasuki_status tasuki_memory_free(tasuki_memory* memory);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
