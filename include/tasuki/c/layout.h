/* Layouts: which bytes of memory, in which order. */
#ifndef TASUKI_C_LAYOUT_H
#define TASUKI_C_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* The constructors mean what MPI's for datatypes mean (layout.hpp). `element` may be freed afterwards. Local. */
tasuki_status tasuki_layout_bytes(int64_t count, tasuki_layout* layout);
tasuki_status tasuki_layout_contiguous(int64_t count, tasuki_layout element, tasuki_layout* layout);
/* The stride counts extents of the element. */
tasuki_status tasuki_layout_vector(int64_t count, int64_t block_length, int64_t stride, tasuki_layout element,
                                   tasuki_layout* layout);
/* The stride counts bytes. */
tasuki_status tasuki_layout_hvector(int64_t count, int64_t block_length, int64_t stride_bytes, tasuki_layout element,
                                    tasuki_layout* layout);
/* A box of `subsizes` cells at `starts` in an array of `sizes` cells, the last dimension contiguous. */
tasuki_status tasuki_layout_subarray(int ndims, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts,
                                     tasuki_layout element, tasuki_layout* layout);
/* Displacements count extents of the element; in hindexed and structure, bytes. */
tasuki_status tasuki_layout_indexed(int count, const int64_t* block_lengths, const int64_t* displacements,
                                    tasuki_layout element, tasuki_layout* layout);
tasuki_status tasuki_layout_hindexed(int count, const int64_t* block_lengths, const int64_t* displacements,
                                     tasuki_layout element, tasuki_layout* layout);
tasuki_status tasuki_layout_structure(int count, const int64_t* block_lengths, const int64_t* displacements,
                                      const tasuki_layout* elements, tasuki_layout* layout);
tasuki_status tasuki_layout_resized(tasuki_layout element, int64_t lower_bound, int64_t extent, tasuki_layout* layout);
tasuki_status tasuki_layout_free(tasuki_layout* layout);

/* Layouts of the blocks of collectives, as MPI counts them, all relative to one base: `count` new handles to `blocks`.
 * Block i begins i extents of `block` after the base (recvtype of MPI_Allgather). Local. */
tasuki_status tasuki_blocks_of(tasuki_layout block, int count, tasuki_layout* blocks);
/* Block i is counts[i] elements from displacements[i] extents of the element on (MPI_Allgatherv, MPI_Alltoallv). */
tasuki_status tasuki_blocks_of_counts(tasuki_layout element, int count, const int64_t* counts,
                                      const int64_t* displacements, tasuki_layout* blocks);
/* Block i is counts[i] of elements[i] from displacements[i] bytes on (MPI_Alltoallw). */
tasuki_status tasuki_blocks_of_elements(int count, const tasuki_layout* elements, const int64_t* counts,
                                        const int64_t* displacements, tasuki_layout* blocks);
/* Frees `count` layouts and sets them to null; none of them if one is a bad handle. */
tasuki_status tasuki_layouts_free(int count, tasuki_layout* layouts);

/* How the bytes lie in memory. */
typedef enum tasuki_pattern {
  TASUKI_EMPTY = 0,
  TASUKI_CONTIGUOUS = 1,
  TASUKI_BLOCK_STRIDE = 2, /* one nest of blocks of more than 16 bytes */
  TASUKI_STRIDE = 3,       /* one nest of blocks of at most 16 bytes */
  TASUKI_LIST = 4          /* several nests */
} tasuki_pattern;

typedef struct tasuki_layout_info {
  size_t size;
  int64_t bytes; /* bytes named */
  int64_t lower_bound;
  int64_t extent;
  int64_t true_lower_bound;
  int64_t true_upper_bound;
  int64_t runs;     /* maximal contiguous runs */
  int32_t pattern;  /* a tasuki_pattern */
  int32_t overlaps; /* not 0: some byte is named twice, which a destination may not */
} tasuki_layout_info;
tasuki_status tasuki_layout_get_info(tasuki_layout layout, tasuki_layout_info* info);
/* `equal`: not 0 if both name the same bytes in the same order, however they were made. */
tasuki_status tasuki_layout_equal(tasuki_layout a, tasuki_layout b, int* equal);
/* The layout's bytes at `base` to contiguous bytes at `packed`, and back. Local. */
tasuki_status tasuki_layout_pack(tasuki_layout layout, const void* base, void* packed);
tasuki_status tasuki_layout_unpack(tasuki_layout layout, const void* packed, void* base);
tasuki_status tasuki_layout_describe(tasuki_layout layout, char** text);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
