/* XcalableMP's directives as functions of C (C11): every directive has a callable twin here.
 *
 * Descriptors (`xmp_desc_t`) name node sets, templates and arrays. Everything is in the order of C's arrays (dimension
 * 0 is the slowest in memory), indices and numbers begin at 0, and ranges do not include their end. The functions whose
 * names the language gives are as it says: `xmp_node_num` counts from 1.
 *
 * Who calls: descriptors are made by all executing nodes, in the same order with the same arguments, and so is what
 * communicates. A node that does not belong to the node set of a call may make it too: nothing happens there. What asks
 * or computes (inquiries, loops, indices) is local. One thread of a process may call.
 *
 * Errors: a function that returns `int` returns XMP_OK or what is wrong. Before it returns, it prints a sentence and
 * ends the program, as MPI does, unless `xmp_on_error(XMP_RETURN)` was called; then `xmp_last_error()` has the
 * sentence.
 */
#ifndef TASUKI_XMP_H
#define TASUKI_XMP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct xmp_object* xmp_desc_t;

enum { XMP_MAX_DIMS = 7 };

/* ---- Errors ---- */

enum {
  XMP_OK = 0,
  XMP_BAD_ARGUMENT = 1, /* an argument, or the state of an object, does not allow the call */
  XMP_DISAGREEMENT = 2, /* the nodes pass different arguments, or make different calls */
  XMP_NOT_POSSIBLE = 3, /* not on this machine, or by this build */
  XMP_RANK_DIED = 4,
  XMP_DEADLINE = 5, /* a wait has lasted longer than TASUKI_DEADLINE seconds */
  XMP_SYSTEM = 6,
  XMP_NO_MEMORY = 7
};
enum { XMP_STOP = 0, XMP_RETURN = 1 };
/* What a failure does from now on: XMP_STOP, the default, or XMP_RETURN. */
void xmp_on_error(int action);
/* The sentence of the last failure; "" before one. It is valid until the next failure. */
const char* xmp_last_error(void);

/* ---- Start and end ---- */

/* Starts MPI unless it runs. All ranks of MPI_COMM_WORLD are the entire nodes. */
int xmp_init(int argc, char** argv);
int xmp_init_mpi(int* argc, char*** argv);
/* Ends what xmp_init has started. All descriptors, and memory of xmp_malloc, are gone then. */
int xmp_finalize(void);
int xmp_finalize_mpi(void);
void xmp_exit(int status); /* ends all nodes */

/* ---- Nodes ---- */

/* Indices first, first + step, ... below `end`. A step of 0 is a step of 1. */
typedef struct {
  int64_t first, end, step;
} xmp_range;

/* `nodes NAME[...]`: the entire nodes. extents[0] may be 0, for `*`: as many as there are. There may be more nodes than
 * the extents have. */
int xmp_nodes(xmp_desc_t* nodes, int ndims, const int64_t extents[]);
/* The same where Tasuki orders the nodes: which of the entire nodes has which place. `mapping`: "row", the order of
 * xmp_nodes; "column"; "blocks", so that few bytes go from island to island; "hops", so that the busiest link carries
 * few (docs/machines.md). `cells`: extents of the array whose faces will travel, one for each dimension; null: all
 * faces are alike. The extents hold all entire nodes. Collective over them. */
int xmp_nodes_mapped(xmp_desc_t* nodes, int ndims, const int64_t extents[], const char* mapping, const int64_t cells[]);
/* `nodes NAME[...] = of[...]`: nodes of another set, a range for each of its dimensions; `section` null: all. `of`
 * null: the executing nodes (`= *`). The extents must hold as many; extents[0] may be 0. Only the nodes named take
 * part. */
int xmp_nodes_of(xmp_desc_t* nodes, int ndims, const int64_t extents[], xmp_desc_t of, const xmp_range section[]);

/* ---- Templates ---- */

enum { XMP_NOT_DISTRIBUTED = 0, XMP_BLOCK = 1, XMP_CYCLIC = 2, XMP_GBLOCK = 3 };
/* How a dimension of a template is distributed. `size`: of a block, 0 as the language chooses (block: extent / nodes,
 * rounded up; cyclic: 1). `map`: gblock's, an entry for each node along the dimension; null: fixed later. */
typedef struct {
  int format;
  int64_t size;
  const int64_t* map;
} xmp_distribution;

/* `template NAME[...]`. `ranges` null: fixed later. */
int xmp_template(xmp_desc_t* template_, int ndims, const xmp_range ranges[]);
/* `distribute NAME[...] onto nodes`. The dimensions that are distributed go to the dimensions of the nodes in their
 * order; there are as many of each. */
int xmp_distribute(xmp_desc_t template_, const xmp_distribution distributions[], xmp_desc_t nodes);
/* `template_fix`: what was left open. Null: it was not. */
int xmp_template_fix(xmp_desc_t template_, const xmp_range ranges[], const xmp_distribution distributions[]);

/* ---- Arrays ---- */

/* Elements. XMP_BYTES: any, of which `element_bytes` says the size; they can be moved, but not added. */
enum {
  XMP_BYTES = 0,
  XMP_I8 = 1,
  XMP_I16 = 2,
  XMP_I32 = 3,
  XMP_I64 = 4,
  XMP_U8 = 5,
  XMP_U16 = 6,
  XMP_U32 = 7,
  XMP_U64 = 8,
  XMP_F32 = 9,
  XMP_F64 = 10,
  XMP_C64 = 13, /* float _Complex */
  XMP_C128 = 14 /* double _Complex */
};

enum { XMP_COLLAPSED = -1 };
#define XMP_ALONG INT64_MIN
typedef struct {
  const char* name;       /* for errors and plans; null: "array" */
  int type;               /* XMP_F64, ... */
  int64_t element_bytes;  /* of XMP_BYTES */
  int ndims;              /* 1 to 7 */
  const int64_t* extents; /* global; the first index is 0 */
  const int* axis;        /* the template's dimension of each dimension, or XMP_COLLAPSED; null: 0, 1, ... */
  const int64_t* offset;  /* index i lies at template index i + offset; null: 0 */
  /* Of each dimension of the template: the index at which all of the array lies, as in `align a[i] with t[i][3]`, or
   * XMP_ALONG. Null: nowhere. Only nodes that own these indices have the array. */
  const int64_t* fixed;
} xmp_array_spec;

/* `align`. Along dimensions of the template that no dimension of the array names, the array is replicated.
 * `template_` null: every executing node has the whole array. */
int xmp_array(xmp_desc_t* array, const xmp_array_spec* spec, xmp_desc_t template_);

typedef struct {
  int64_t below, above;
} xmp_width;
#ifdef __cplusplus
#define XMP_FULL_SHADOW (xmp_width{-1, -1})
#else
#define XMP_FULL_SHADOW ((xmp_width){-1, -1})
#endif
/* `shadow NAME[...]`, before the array has memory. Every dimension may have one but cyclic ones. */
int xmp_shadow(xmp_desc_t array, const xmp_width widths[]);

/* Memory of the local elements, shadow included, in C's order, that the host's other nodes can reach: nothing is
 * staged. The older memory of the array is freed. All nodes of the array do so, but wait for nobody. xmp_malloc takes
 * new extents, an `int` for each dimension, as the language has it; null is returned where the node has no elements or
 * shadow, and after an error. */
int xmp_allocate(xmp_desc_t array, void** memory);
void* xmp_malloc(xmp_desc_t array, ...);
/* The same with memory of the caller's (static, on the stack, malloc), xmp_local_bytes of it, until it is bound anew or
 * freed. Plans of older memory are made anew when they are needed next. */
int xmp_bind(xmp_desc_t array, void* memory);
/* Gives up a descriptor, an array's memory included. An array must not take part in what is not finished. */
int xmp_free(xmp_desc_t* desc);

/* What a loop over an array's local elements needs. Of a dimension that is not cyclic, global index i is at local index
 * i - base. Of a cyclic one base is 0: use xmp_local_index. */
typedef struct {
  int ndims;
  void* data;                    /* null: no memory */
  void* device;                  /* on this node's GPU (xacc.h) */
  int64_t bytes;                 /* of the local memory */
  int64_t own[XMP_MAX_DIMS];     /* how many elements it owns */
  int64_t first[XMP_MAX_DIMS];   /* the first one, a global index */
  int64_t extents[XMP_MAX_DIMS]; /* in memory, shadow included */
  int64_t strides[XMP_MAX_DIMS]; /* in elements */
  int64_t base[XMP_MAX_DIMS];
} xmp_view;
int xmp_get_view(xmp_desc_t array, xmp_view* view);
int64_t xmp_local_bytes(xmp_desc_t array);
/* -1: the node does not have it. xmp_local_index knows the shadow, xmp_global_index the elements that are owned. */
int64_t xmp_local_index(xmp_desc_t array, int dim, int64_t global);
int64_t xmp_global_index(xmp_desc_t array, int dim, int64_t local);

/* ---- Work ---- */

/* `loop on template`, a dimension of it: the node's part of an iteration range, in pieces.
 *
 *   xmp_loop loop;
 *   xmp_loop_begin(&loop, t, 0, (xmp_range){1, N - 1, 1});
 *   while (xmp_loop_next(&loop))
 *     for (int64_t i = loop.first; i < loop.end; i += loop.step) ...
 *
 * There is one piece, or none, unless the dimension is cyclic(n) with n > 1. */
typedef struct {
  int64_t first, end, step;
  xmp_desc_t template_;
  int dim;
  xmp_range all;
} xmp_loop;
int xmp_loop_begin(xmp_loop* loop, xmp_desc_t template_, int dim, xmp_range range);
int xmp_loop_next(xmp_loop* loop); /* 1: there is a piece; 0: there is none */

/* `loop on ... expand(w)`, `margin(w)`, and the two parts of `peel_and_wait(id, w)`: the node's part of a nest, a range
 * for each dimension of the template, as disjoint nests. XMP_EXPAND: so many more iterations at either side of what it
 * owns; negative: fewer, the interior. XMP_MARGIN: only those by which XMP_EXPAND differs; with negative widths the
 * boundary. The ranges of the loop are never left. Dimensions must not be cyclic. */
enum { XMP_EXPAND = 0, XMP_MARGIN = 1, XMP_MAX_NESTS = 14 };
typedef struct {
  int count;
  xmp_range ranges[XMP_MAX_NESTS][XMP_MAX_DIMS];
} xmp_nests;
int xmp_loop_nests(xmp_desc_t template_, const xmp_range ranges[], int edge, const xmp_width widths[],
                   xmp_nests* nests);

/* `task on NODES[...]` or `TEMPLATE[...]` (the nodes that own some of it). `section` null: all. The nodes become the
 * executing ones until xmp_task_end. *mine: whether this node is one of them; the others do not call xmp_task_end.
 * Only nodes of the task take part in anything: there is no barrier. */
int xmp_task_begin(xmp_desc_t on, const xmp_range section[], int* mine);
int xmp_task_end(void);

/* ---- Communication of shadows ---- */

typedef struct {
  const xmp_width* width; /* for each dimension; null: the whole shadow. Not wider than that. */
  const int* periodic;    /* for each dimension, 0 or 1: the array wraps around; null: nowhere */
  int orthogonal;         /* 1: without what lies outside in two dimensions or more (corners) */
  const char* path;       /* as Tasuki's option 'path' (docs/paths.md); null: the cheapest for each piece */
} xmp_reflect_options;

/* `reflect (a, ...)`: the shadow gets the values of the elements' owners. Edges that are not periodic stay as they are.
 * `options` null: the whole shadow, not periodic, with corners. The plan is made at the first call and kept. */
int xmp_reflect(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options);
int xmp_reflect_async(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int id);
/* `reflect_init`, `reflect_do`: the plan is made now, and run later. The arrays of a do are those of one init. */
int xmp_reflect_init(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options);
int xmp_reflect_do(int count, const xmp_desc_t arrays[]);
int xmp_reflect_do_async(int count, const xmp_desc_t arrays[], int id);
/* `reduce_shadow`: adds the shadow's values into the elements' owners. The shadow keeps its values. */
int xmp_reduce_shadow(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options);
/* Tasuki's table of what the reflect that `reflect_init` has made sends: each direction's bytes, pattern, path and
 * price. It is valid until the next call. Null after an error. Local. */
const char* xmp_reflect_explain(xmp_desc_t array);

/* Tasuki's verifier on every plan that has been made since the last call: *report is "" or what it found, valid until
 * the next call. Collective over the entire nodes, between tasks. */
int xmp_verify(const char** report);

/* ---- Other communication ---- */

/* `gmove`, collective over the executing nodes: to[to_section] = from[from_section]. A section is a range for each
 * dimension; null: all. Dimensions with one element are passed over, the others correspond in their order. The arrays
 * may be distributed in any way, and may be the same one: the right side is read first. */
int xmp_gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[]);
int xmp_gmove_async(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[],
                    int id);

typedef struct {
  void* data;
  int64_t count;
  int type;
} xmp_variable;
enum {
  XMP_SUM,
  XMP_PROD,
  XMP_MINUS, /* of a reduction: partial results are added */
  XMP_BAND,
  XMP_BOR,
  XMP_BXOR,
  XMP_LAND,
  XMP_LOR,
  XMP_MAX,
  XMP_MIN,
  XMP_FIRSTMAX,
  XMP_FIRSTMIN,
  XMP_LASTMAX,
  XMP_LASTMIN
};
/* `reduction (op: v, ...)`: the variables of all nodes, combined element by element, on every node. `on`: a node set;
 * null: the executing nodes. Nodes that are not in it return at once. */
int xmp_reduction(int op, int count, const xmp_variable variables[], xmp_desc_t on);
int xmp_reduction_async(int op, int count, const xmp_variable variables[], xmp_desc_t on, int id);
/* `reduction (firstmax: v /l, .../)`, and of the other three: also the locations, of the node whose value it is; of
 * several with equal values the first, or the last, in the order of the nodes. `v.count` elements each. */
int xmp_reduction_loc(int op, xmp_variable v, int locations, const xmp_variable location[], xmp_desc_t on);
/* `bcast (v, ...) from NODE`: `from` is a number in the order of the nodes, from 0 (xmp_node_number). */
int xmp_bcast(int count, const xmp_variable variables[], int from, xmp_desc_t on);
int xmp_bcast_async(int count, const xmp_variable variables[], int from, xmp_desc_t on, int id);
int xmp_barrier(xmp_desc_t on);
/* The number in its set of the node at these indices, from 0; -1: there is none. Local. */
int xmp_node_number(xmp_desc_t nodes, const int index[]);

/* Returns when everything with this id, or these, has ended on this node. An id that nobody has used has. */
int xmp_wait_async(int count, const int ids[]);
/* 1: everything with this id has ended; 0: not yet, or an error. */
int xmp_test_async(int id);

/* `post (node, tag)`: signals a node of the set, which `wait`s for it. Returns at once. */
int xmp_post(xmp_desc_t nodes, int number, int tag);
enum { XMP_ANY = -1 };
/* `wait (node, tag)`, and with XMP_ANY for the number, the tag or both: of anybody, with any tag. */
int xmp_wait(xmp_desc_t nodes, int number, int tag);

/* The language's intrinsics, on whole arrays. to[j][i] = from[i][j]; `option` is of no effect here. c = a * b; both sum
 * in the order of the inner index, whatever the distribution. Collective over the executing nodes. */
int xmp_transpose(xmp_desc_t to, xmp_desc_t from, int option);
int xmp_matmul(xmp_desc_t c, xmp_desc_t a, xmp_desc_t b);

/* ---- Inquiries, by the language's names. Dimensions count from 1 in C's order, as indices of nodes do. Local. ---- */

int xmp_num_nodes(void);     /* executing */
int xmp_node_num(void);      /* of this node among them, from 1 */
int xmp_all_num_nodes(void); /* entire */
int xmp_all_node_num(void);
int xmpc_node_num(void); /* from 0 */
int xmpc_all_node_num(void);
double xmp_wtime(void); /* seconds */
double xmp_wtick(void);

enum { XMP_ENTIRE_NODES = 0, XMP_EXECUTING_NODES = 1, XMP_EQUIVALENCE_NODES = 3 };
enum { XMP_UNDEFINED = -1 };
int xmp_nodes_ndims(xmp_desc_t nodes, int* ndims);
int xmp_nodes_index(xmp_desc_t nodes, int dim, int* index); /* of this node, from 1; XMP_UNDEFINED: it is not in it */
int xmp_nodes_size(xmp_desc_t nodes, int dim, int* size);
int xmp_nodes_attr(xmp_desc_t nodes, int* attr);
int xmp_template_fixed(xmp_desc_t template_, int* fixed);
int xmp_template_ndims(xmp_desc_t template_, int* ndims);
int xmp_template_lbound(xmp_desc_t template_, int dim, int* lower);
int xmp_template_ubound(xmp_desc_t template_, int dim, int* upper); /* the last index */
int xmp_dist_format(xmp_desc_t template_, int dim, int* format);
int xmp_dist_blocksize(xmp_desc_t template_, int dim, int* size);
int xmp_dist_gblockmap(xmp_desc_t template_, int dim, int map[]);
int xmp_dist_nodes(xmp_desc_t template_, xmp_desc_t* nodes);
int xmp_dist_axis(xmp_desc_t template_, int dim, int* axis); /* of the nodes; XMP_UNDEFINED: not distributed */
int xmp_align_axis(xmp_desc_t array, int dim, int* axis);    /* of the template; XMP_UNDEFINED: collapsed */
int xmp_align_offset(xmp_desc_t array, int dim, int* offset);
int xmp_align_replicated(xmp_desc_t array, int dim, int* replicated); /* dim: of the template */
int xmp_align_template(xmp_desc_t array, xmp_desc_t* template_);
int xmp_array_ndims(xmp_desc_t array, int* ndims);
int xmp_array_lshadow(xmp_desc_t array, int dim, int* width);
int xmp_array_ushadow(xmp_desc_t array, int dim, int* width);
int xmp_array_lbound(xmp_desc_t array, int dim, int* lower);
int xmp_array_ubound(xmp_desc_t array, int dim, int* upper); /* the last index */
int xmp_array_gsize(xmp_desc_t array, int dim, int* size);
int xmp_array_lsize(xmp_desc_t array, int dim, int* size); /* in memory, shadow included */
int xmp_array_laddr(xmp_desc_t array, void** address);
int xmp_array_lead_dim(xmp_desc_t array, int size[]); /* as xmp_array_lsize, of all dimensions */
int xmp_array_gtol(xmp_desc_t array, const int global[], int local[]);
/* The number of the node that owns the element, of several the first one, from 1. */
int xmp_array_owner(xmp_desc_t array, const int global[], int* node);

#ifdef MPI_VERSION               /* mpi.h was included before */
MPI_Comm xmp_get_mpi_comm(void); /* of the executing nodes; for the caller's own collectives */
#endif

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
