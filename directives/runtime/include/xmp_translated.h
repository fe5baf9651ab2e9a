/* What the C that tasuki-cc generates calls beyond xmp.h. Programs by hand do not need it.
 *
 * A global index of the program is an index of C here too: an array's name becomes a pointer that is moved so that
 * element (i, j) of the whole array is at [i][j], if this node has it.
 */
#ifndef TASUKI_XMP_TRANSLATED_H
#define TASUKI_XMP_TRANSLATED_H

#include "xmp.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Has `declare` called by xmp_start, after those of files that were linked before. */
void xmp_at_start(void (*declare)(void));
/* The first call of `main`: xmp_init, and the declarations of all files. When the program ends with status 0, so does
 * the library; with another status all nodes end. */
void xmp_start(int argc, char** argv);
/* The file and line of the directive that comes now, which errors of waits name. `line` stays as it is. Local. */
void xmp_at(const char* line);

/* An array and where its memory is. Element (i, j, ...) is at (i * extents[1] + j) * extents[2] + ... behind `origin`.
 */
typedef struct {
  xmp_desc_t desc;
  void* origin;
  int64_t extents[XMP_MAX_DIMS];
} xmp_placed;
/* Gives the array memory, all zero, and fills in the rest. Collective over its nodes. */
void xmp_place(xmp_placed* array);
/* The same with the memory of another one: `origin` is that array's. Local. */
void xmp_place_at(xmp_placed* array, const void* origin);
/* xmp_place for an array that a pointer names; the first element in memory, as xmp_malloc. */
void* xmp_place_anew(xmp_placed* array);

/* At the end of a block: what was declared in it, and its task. */
void xmp_drop(xmp_desc_t* desc);
void xmp_drop_placed(xmp_placed* array);
void xmp_leave(const int* task);

/* Ends of ranges that are open, and the range of `*` for nodes: the index of this one. */
#define XMP_OPEN_FIRST INT64_MIN
#define XMP_OPEN_END INT64_MAX
#define XMP_OWN (INT64_MIN + 1)
/* Fills such ranges in, of nodes, a template or an array; returns `section`. Local. */
const xmp_range* xmp_section(xmp_desc_t on, xmp_range section[]);
/* Nodes that a reference names, as a set of one dimension, to be freed. `section` null: all. Local. */
xmp_desc_t xmp_set(xmp_desc_t on, const xmp_range section[]);
/* Whether this node is one of those that a reference names. Local. */
int xmp_contains(xmp_desc_t on, const xmp_range section[]);
/* The number, in `on` or among the executing nodes, of the one node that a reference names. */
int xmp_source(xmp_desc_t from, const xmp_range section[], xmp_desc_t on);
/* xmp_task_begin: whether this node is one of them. */
int xmp_enter(xmp_desc_t on, const xmp_range section[]);
/* The map of gblock, along a dimension of the nodes; valid for the next four calls. */
const int64_t* xmp_map(xmp_desc_t nodes, int dim, const int* map);

/* This node's iterations of `for (i ...)` with the indices `all`, where i + offset is an index of dimension `dim` of a
 * template or of nodes: one range, so the dimension is not cyclic(n). Local. */
xmp_range xmp_part(xmp_desc_t on, int dim, xmp_range all, int64_t offset);
/* The same in pieces for xmp_loop_next, in indices of the template. */
xmp_loop xmp_pieces(xmp_desc_t template_, int dim, xmp_range all, int64_t offset);
/* Whether this node has the index. Local. */
int xmp_has(xmp_desc_t on, int dim, int64_t index);

/* The nodes whose partial results `loop on` combines, to be freed: those that differ from this one only along
 * dimensions that a loop runs on. Local. */
xmp_desc_t xmp_combiners(xmp_desc_t on, const int runs[]);
/* Before such a loop: all of these nodes but the first get what changes nothing (0 for a sum). */
void xmp_clear(int op, int count, const xmp_variable variables[], xmp_desc_t on);

/* Memory that every executing node has as a whole, as an array, to be freed. Local. */
xmp_desc_t xmp_local(void* data, int type, int64_t element_bytes, int ndims, const int64_t extents[]);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
