/* Broadcasts: from one rank to all. */
#ifndef TASUKI_C_BROADCAST_H
#define TASUKI_C_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_broadcast_options {
  size_t size;
  const char* path;
  const char* engine;
  int blocks;
  int trees; /* 0 here and below: chosen by cost */
  int arity;
  int64_t chunk;         /* bytes */
  const char* algorithm; /* by name (docs/collectives.md); null: "auto" */
} tasuki_broadcast_options;
#define TASUKI_BROADCAST_OPTIONS_INIT \
  { sizeof(tasuki_broadcast_options), NULL, NULL, 0, 0, 0, 0, NULL }

/* `bytes` contiguous bytes at `data` of rank `root` to `data` of every rank at every start. Collective. */
tasuki_status tasuki_broadcast_create(tasuki_context context, int root, void* data, int64_t bytes,
                                      const tasuki_broadcast_options* options, tasuki_operation* broadcast);
/* The same from the bytes that the root's layout names, counted from `data`, to those that the layout of every rank
 * names, which are as many; ranks may have different ones. They may be freed afterwards. Collective. */
tasuki_status tasuki_broadcast_create_layout(tasuki_context context, int root, void* data, tasuki_layout layout,
                                             const tasuki_broadcast_options* options, tasuki_operation* broadcast);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
