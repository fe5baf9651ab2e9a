/* What programs made by `tasuki-cc --check -o ...` call beyond xmp_translated.h: each index of a distributed dimension
 * is compared with what this node has. A program that leaves it ends, on all nodes.
 */
#ifndef TASUKI_XMP_CHECKED_H
#define TASUKI_XMP_CHECKED_H

#include <stdio.h>
#include <stdlib.h>

#include "xmp_translated.h"

/* Gives `index` back, an index of the whole array in dimension `dim`, if this node has it, shadow included. Else says
 * so with `where`, the file and line of the reference, and ends the program with status 3. Local. */
static inline int64_t xmp_within(const xmp_placed* array, const char* name, int dim, int64_t index, const char* where) {
  xmp_view view;
  xmp_get_view(array->desc, &view);
  const int64_t first = view.base[dim], end = first + view.extents[dim];
  if (index >= first && index < end) return index;
  fprintf(stderr, "%s: error: rank %d: '%s' has no element %lld in dimension %d here; ", where, xmpc_all_node_num(),
          name, (long long)index, dim);
  if (first < end)
    fprintf(stderr, "this node has %lld to %lld, shadow included\n", (long long)first, (long long)(end - 1));
  else
    fprintf(stderr, "this node has none\n");
  fprintf(stderr, "    remedy: widen the shadow and reflect it before, or move the elements by gmove\n");
  exit(3);
}

#endif
