/* Halos: exchanges of the shadows of fields. */
#ifndef TASUKI_C_HALO_H
#define TASUKI_C_HALO_H

#include <stddef.h>

#include "tasuki/c/status.h"
#include "tasuki/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

typedef struct tasuki_halo_options {
  size_t size;
  const char* path;
  const char* engine;
  int blocks;
  int corners;     /* also cells outside the owned box in two or more dimensions */
  int reverse;     /* add every shadow cell into the cell's owner instead */
  int alternating; /* fields with two copies are swapped exactly once between two starts (halo.hpp) */
} tasuki_halo_options;
#define TASUKI_HALO_OPTIONS_INIT \
  { sizeof(tasuki_halo_options), NULL, NULL, 0, 1, 0, 0 }

/* An exchange of the halos of `count` fields of one context. `widths`: how much of each shadow takes part, an entry a
 * field; null: all of it. Collective. */
tasuki_status tasuki_halo_create(int count, const tasuki_field* fields, const tasuki_width* widths,
                                 const tasuki_halo_options* options, tasuki_operation* halo);

/* `compute(box, data)` for every boundary box of `field` (cells within `width` of a side), start, `compute` of the
 * interior while the halo travels, wait. Boxes are in local indices, disjoint, together all owned cells. `compute`
 * drives nothing of Tasuki. Only for halos. A width that is narrower than what the halo sends is refused: whoever means
 * it calls tasuki_field_boundary, tasuki_start, tasuki_field_interior and tasuki_wait. */
typedef void (*tasuki_compute)(const tasuki_box* box, void* data);
tasuki_status tasuki_overlap(tasuki_operation halo, tasuki_field field, const tasuki_width* width,
                             tasuki_compute compute, void* data);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
