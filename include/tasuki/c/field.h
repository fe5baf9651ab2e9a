/* Fields: an array over a grid, with its shadow. */
#ifndef TASUKI_C_FIELD_H
#define TASUKI_C_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_field_options {
  size_t size;
  const char* name;      /* for plans and errors; null: "field" */
  tasuki_width shadow;   /* cells around the owned box */
  int copies;            /* instances in memory: 1, or 2 for double buffering (tasuki_field_swap) */
  int memory;            /* TASUKI_HOST or TASUKI_DEVICE */
  int64_t pad;           /* extra cells at the end of each row of the last dimension */
  int64_t element_bytes; /* for TASUKI_BYTES; otherwise 0, or the type's size */
  /* For the caller's memory: the extents of the caller's array, ndims entries, which are compared with what the field
   * needs (local cells, shadow included; the last with padding); null: not checked. */
  const int64_t* memory_extents;
} tasuki_field_options;
#define TASUKI_FIELD_OPTIONS_INIT \
  { sizeof(tasuki_field_options), NULL, {{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1}}, 1, TASUKI_HOST, 0, 0, NULL }

/* An array over `grid` of elements of `type` (a tasuki_type) in memory of Tasuki's, zero-filled. Collective. */
tasuki_status tasuki_field_create(tasuki_grid grid, int type, const tasuki_field_options* options, tasuki_field* field);
/* The same in the caller's memory: one pointer a copy, alive as long as the field and its operations. On a device if
 * the pointers are. Collective. */
tasuki_status tasuki_field_wrap(tasuki_grid grid, int type, void* const* memory, int count,
                                const tasuki_field_options* options, tasuki_field* field);
/* Fails while an operation uses the field: free that first. Local. */
tasuki_status tasuki_field_free(tasuki_field* field);

typedef struct tasuki_field_info {
  size_t size;
  int32_t ndims;
  int32_t type; /* a tasuki_type */
  int32_t memory;
  int32_t copies;
  int32_t current; /* number of the current copy */
  int64_t element_bytes;
  int64_t bytes; /* of one copy */
  tasuki_width shadow;
  tasuki_box owned;                 /* this rank's cells, global indices */
  tasuki_box local_owned;           /* the same in local indices, which begin with the shadow */
  int64_t extents[TASUKI_MAX_DIMS]; /* local cells in memory, shadow included, padding excluded */
  int64_t strides[TASUKI_MAX_DIMS]; /* in elements: cell (i, j) is element i * strides[0] + j * strides[1] */
} tasuki_field_info;
tasuki_status tasuki_field_get_info(tasuki_field field, tasuki_field_info* info);
tasuki_status tasuki_field_name(tasuki_field field, char** name);
/* The start of the current copy; of the other one, which swap makes current; of copy 0 or 1. Local. */
tasuki_status tasuki_field_data(tasuki_field field, void** data);
tasuki_status tasuki_field_next(tasuki_field field, void** data);
tasuki_status tasuki_field_copy_data(tasuki_field field, int copy, void** data);
/* The other copy becomes the current one. Local; fails for a field with one copy. */
tasuki_status tasuki_field_swap(tasuki_field field);
/* All bytes of the current copy, shadow and padding included, from or to host memory. Local; blocks. */
tasuki_status tasuki_field_upload(tasuki_field field, const void* host);
tasuki_status tasuki_field_download(tasuki_field field, void* host);
/* Boundary and interior for overlap, in local indices: the owned cells within `width` of a side in at most 14 disjoint
 * boxes, and the rest. Local. */
#define TASUKI_MAX_BOUNDARY 14
tasuki_status tasuki_field_boundary(tasuki_field field, const tasuki_width* width,
                                    tasuki_box boxes[TASUKI_MAX_BOUNDARY], int* count);
tasuki_status tasuki_field_interior(tasuki_field field, const tasuki_width* width, tasuki_box* box);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
