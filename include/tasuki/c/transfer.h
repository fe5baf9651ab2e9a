/* Transfers: from a layout on one rank to a layout on another. */
#ifndef TASUKI_C_TRANSFER_H
#define TASUKI_C_TRANSFER_H

#include <stddef.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_transfer_options {
  size_t size;
  const char* path;
  const char* engine;
  int blocks;
} tasuki_transfer_options;
#define TASUKI_TRANSFER_OPTIONS_INIT \
  { sizeof(tasuki_transfer_options), NULL, NULL, 0 }

/* One side of a transfer: `layout` relative to `base` on `rank`. Other ranks may leave base and layout null. */
typedef struct tasuki_side {
  int rank;
  void* base;
  tasuki_layout layout;
} tasuki_side;

/* The bytes of one rank's layout to those of another's (equal sizes, any shapes) at every start; the ranks may be the
 * same. Collective over these two ranks, who hear of each other's mistakes; others need not call it, and if they do, it
 * is local and starting it does nothing. A null side or a rank that does not exist fails on this rank at once. The
 * layouts may be freed afterwards. */
tasuki_status tasuki_transfer_create(tasuki_context context, const tasuki_side* from, const tasuki_side* to,
                                     const tasuki_transfer_options* options, tasuki_operation* transfer);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
