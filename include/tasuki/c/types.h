/* Handles, boxes, and the numbers of element types, places of memory and operators. */
#ifndef TASUKI_C_TYPES_H
#define TASUKI_C_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_context_s* tasuki_context;     /* the ranks that work together */
typedef struct tasuki_grid_s* tasuki_grid;           /* an array of cells cut into boxes, one a rank */
typedef struct tasuki_field_s* tasuki_field;         /* an array over a grid, with shadow */
typedef struct tasuki_layout_s* tasuki_layout;       /* which bytes, in which order */
typedef struct tasuki_memory_s* tasuki_memory;       /* memory that the ranks of a host share */
typedef struct tasuki_operation_s* tasuki_operation; /* a halo, transfer or collective */
typedef struct tasuki_fork_s* tasuki_fork;           /* a second stream for an exchange beside a kernel */
typedef struct tasuki_graph_s* tasuki_graph;         /* work of a stream, captured to be replayed */

#define TASUKI_MAX_DIMS 7

/* A half-open box of cells: lo[d] <= i[d] < hi[d] for d < ndims. */
typedef struct tasuki_box {
  int32_t ndims;
  int64_t lo[TASUKI_MAX_DIMS];
  int64_t hi[TASUKI_MAX_DIMS];
} tasuki_box;

/* A width for every side, in cells: lo[d] below and hi[d] above in dimension d. */
typedef struct tasuki_width {
  int64_t lo[TASUKI_MAX_DIMS];
  int64_t hi[TASUKI_MAX_DIMS];
} tasuki_width;

/* The same width on every side. */
static inline tasuki_width tasuki_width_of(int64_t cells) {
  tasuki_width width;
  int d;
  for (d = 0; d < TASUKI_MAX_DIMS; ++d) width.lo[d] = width.hi[d] = cells;
  return width;
}

/* Element types. TASUKI_BYTES: anything else that can be copied as its bytes; it cannot be combined (reverse halos,
 * reductions). Those above TASUKI_F64 are for collectives only: binary16, the upper half of an F32, complex numbers,
 * and pairs of a value and an index, laid out as C lays out the struct of the two (dtype.hpp). */
typedef enum tasuki_type {
  TASUKI_BYTES = 0,
  TASUKI_I8 = 1,
  TASUKI_I16 = 2,
  TASUKI_I32 = 3,
  TASUKI_I64 = 4,
  TASUKI_U8 = 5,
  TASUKI_U16 = 6,
  TASUKI_U32 = 7,
  TASUKI_U64 = 8,
  TASUKI_F32 = 9,
  TASUKI_F64 = 10,
  TASUKI_F16 = 11,
  TASUKI_BF16 = 12,
  TASUKI_C64 = 13,
  TASUKI_C128 = 14,
  TASUKI_F32_I32 = 15,
  TASUKI_F64_I32 = 16,
  TASUKI_I32_I32 = 17,
  TASUKI_I64_I32 = 18,
  TASUKI_F64_I64 = 19,
  TASUKI_I64_I64 = 20
} tasuki_type;

/* Where memory is. */
#define TASUKI_HOST 0
#define TASUKI_DEVICE 1

/* How a reduction combines two elements; dtype.hpp says what each means, and for which types. */
typedef enum tasuki_op {
  TASUKI_SUM = 0,
  TASUKI_PRODUCT = 1,
  TASUKI_MIN = 2,
  TASUKI_MAX = 3,
  TASUKI_BAND = 4,
  TASUKI_BOR = 5,
  TASUKI_BXOR = 6,
  TASUKI_LAND = 7,
  TASUKI_LOR = 8,
  TASUKI_LXOR = 9,
  TASUKI_MINLOC = 10,
  TASUKI_MAXLOC = 11,
  TASUKI_OWN = 12 /* the function in the options */
} tasuki_op;

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
