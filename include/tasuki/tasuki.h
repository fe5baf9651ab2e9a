/* Tasuki's interface for C (C99), for C++ without exceptions, and for languages that can call C.
 *
 * Handles are opaque; each noun has its own type of handle. A call with a handle that is null, freed, or of another
 * kind returns TASUKI_BAD_HANDLE and touches nothing. Every function that makes something has its handle as the last
 * argument and writes to it only when it succeeds; every free takes the handle's address and sets it to null.
 *
 * Errors: every function returns a tasuki_status; TASUKI_OK is 0. tasuki_last_error() gives the text of the calling
 * thread's last failure. No function aborts the program, and no exception leaves a function. A collective function that
 * fails on one rank fails on all of them, with the text of the rank that found the problem. Exception: a rank whose
 * context (or, for halos, every field) is a bad handle returns at once, and the others' waits end at the deadline.
 *
 * Options are structs that begin with their own size, so that later versions may add members at their end. Begin with
 * the initialiser of the same name, which holds the defaults, and change what you like; a null pointer means the
 * defaults:
 *
 *     tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
 *     options.copies = 2;
 *
 * Dimensions: dimension 0 is the slowest in memory, the last one is contiguous, as in C's own arrays.
 *
 * Texts that a function hands out (char** arguments) end with a zero and are given back by tasuki_text_free.
 *
 * Threads: one thread at a time may use the objects of one context. Different contexts may be used by different
 * threads.
 */
#ifndef TASUKI_TASUKI_H
#define TASUKI_TASUKI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

/* ---- Status ----------------------------------------------------------------------------------------------------- */

typedef enum tasuki_status {
  TASUKI_OK = 0,
  TASUKI_BAD_HANDLE = 1,   /* null, freed, or of another kind; the text names the argument */
  TASUKI_BAD_ARGUMENT = 2, /* a null pointer, a number that the enumeration lacks, options of an unknown size */
  TASUKI_FAILED = 3,     /* any other failure: wrong or differing arguments, dead ranks, deadlines; the text says it */
  TASUKI_NO_MEMORY = 4,  /* the process has none left */
  TASUKI_INTERNAL = 5,   /* an exception that is not Tasuki's, such as one thrown by a callback */
  TASUKI_INTERRUPTED = 6 /* a wait was left early (wait_hooks.hpp); the operation may be waited for again */
} tasuki_status;

/* The text of the last call that failed in this thread; empty if none has. Valid until the next call fails there. */
const char* tasuki_last_error(void);
/* "TASUKI_OK", ...; "unknown status" for other numbers. */
const char* tasuki_status_name(int status);
/* Gives back a text that a function has handed out. Null is allowed. */
void tasuki_text_free(char* text);

/* ---- Handles and plain data ------------------------------------------------------------------------------------- */

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

/* ---- Context ---------------------------------------------------------------------------------------------------- */

/* Over MPI_COMM_WORLD. Starts MPI (MPI_THREAD_MULTIPLE) if nobody has, and then ends it with the context's last holder.
 * `argc` and `argv` may both be null. Collective. */
tasuki_status tasuki_init(int* argc, char*** argv, tasuki_context* context);
/* Over a duplicate of `comm`, which the caller may free afterwards. MPI must have been started. Collective. */
tasuki_status tasuki_context_create(MPI_Comm comm, tasuki_context* context);
/* The same with Fortran's number for a communicator (an INTEGER, or the MPI_VAL of a TYPE(MPI_Comm)). */
tasuki_status tasuki_context_create_f(int comm, tasuki_context* context);
/* A context of these `count` ranks of `context` alone, numbered in this order, with its settings, deadline, islands,
 * prices and GPU; what is done with it involves them and nobody else. Memory of `context` counts as the caller's there.
 * Collective over the ranks named, who pass the same list; others need not call it. A list that is empty, names a rank
 * twice, one that does not exist, or not the caller's fails on this rank at once; lists that differ, on all who are
 * named. If they name different ranks, or one does not come before the deadline, `context` cannot be used again. It is
 * freed like any context, in any order: ranks wait for each other with the last context only. */
tasuki_status tasuki_context_subset(tasuki_context context, int count, const int* ranks, tasuki_context* subset);
/* Frees the handle. The context lives on while a grid, field, operation or memory of it does; freeing the last of them
 * waits for the other ranks, without a deadline. Local otherwise. */
tasuki_status tasuki_context_free(tasuki_context* context);

tasuki_status tasuki_rank(tasuki_context context, int* rank);
tasuki_status tasuki_size(tasuki_context context, int* ranks);
/* Tasuki's duplicate, for the caller's own collectives; MPI_COMM_NULL where ranks are threads. */
tasuki_status tasuki_comm(tasuki_context context, MPI_Comm* comm);
/* Seconds that a wait may take before it fails (30 unless TASUKI_DEADLINE says otherwise), above 0. Local. */
tasuki_status tasuki_deadline(tasuki_context context, double* seconds);
tasuki_status tasuki_set_deadline(tasuki_context context, double seconds);
/* Collective. Fails like a wait if a rank has died. */
tasuki_status tasuki_barrier(tasuki_context context);
/* `bytes` bytes of every rank, in the order of ranks, to `all` (ranks * bytes). `bytes` is the same on all ranks.
 * Collective; fails like a wait if a rank has died. */
tasuki_status tasuki_allgather(tasuki_context context, const void* mine, size_t bytes, void* all);
/* Ranks, hosts and islands, a line each. Local. */
tasuki_status tasuki_describe(tasuki_context context, char** text);

/* Runs `body` in `ranks` threads of this process, each a rank of a context made for them, and returns when all have
 * ended; MPI is not used (threads.hpp). The context is freed when `body` returns; `body` frees everything else that it
 * has made. A body that returns anything but TASUKI_OK has failed: waits on the other ranks end, and this call returns
 * TASUKI_FAILED with that thread's last error. */
typedef int (*tasuki_thread_body)(tasuki_context context, void* data);
tasuki_status tasuki_run_threads(int ranks, tasuki_thread_body body, void* data);

/* ---- Grid ------------------------------------------------------------------------------------------------------- */

typedef struct tasuki_grid_options {
  size_t size;
  const int* split;    /* ranks in each dimension, 0: chosen by Tasuki; null: all are */
  const int* periodic; /* not 0: periodic, an entry a dimension; null: none is */
  /* Explicit cuts: for dimension d, null or cut_counts[d] ascending indices from 0 to the extent. Null: none. */
  const int64_t* const* cuts;
  const int* cut_counts;
  int reorder; /* not 0: Tasuki chooses which rank has which box, so that large faces stay inside islands */
} tasuki_grid_options;
#define TASUKI_GRID_OPTIONS_INIT \
  { sizeof(tasuki_grid_options), NULL, NULL, NULL, NULL, 0 }

/* A grid of `ndims` (1 to 7) dimensions over all ranks of the context. Collective; the same arguments on all ranks. */
tasuki_status tasuki_grid_create(tasuki_context context, int ndims, const int64_t* extents,
                                 const tasuki_grid_options* options, tasuki_grid* grid);
tasuki_status tasuki_grid_free(tasuki_grid* grid);

typedef struct tasuki_grid_info {
  size_t size;
  int32_t ndims;
  int32_t number; /* of this grid among the context's grids and fields */
  int64_t extents[TASUKI_MAX_DIMS];
  int32_t split[TASUKI_MAX_DIMS];
  int32_t periodic[TASUKI_MAX_DIMS];
  tasuki_box owned; /* this rank's cells, global indices */
} tasuki_grid_info;
/* Local. `info->size` says how much of the struct the caller knows: sizeof(tasuki_grid_info). */
tasuki_status tasuki_grid_get_info(tasuki_grid grid, tasuki_grid_info* info);
/* The cells of `rank`, global indices. Local. */
tasuki_status tasuki_grid_owned(tasuki_grid grid, int rank, tasuki_box* box);
/* Where `rank` is in the grid of ranks: ndims numbers. Local. */
tasuki_status tasuki_grid_coords(tasuki_grid grid, int rank, int* coords);
tasuki_status tasuki_grid_rank_at(tasuki_grid grid, const int* coords, int* rank);
/* First global index of the ranks at `coord` in dimension d; coord = split[d] gives the extent. Local. */
tasuki_status tasuki_grid_cut(tasuki_grid grid, int d, int coord, int64_t* index);

/* ---- Field ------------------------------------------------------------------------------------------------------ */

/* Where memory is. */
#define TASUKI_HOST 0
#define TASUKI_DEVICE 1

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

/* ---- Layout ----------------------------------------------------------------------------------------------------- */

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

/* ---- Shared memory ---------------------------------------------------------------------------------------------- */

/* `bytes` zero-filled bytes (may differ between ranks) that the ranks of the same host can reach: transfers and
 * broadcasts from and to them need no staging. Local. */
tasuki_status tasuki_shared_alloc(tasuki_context context, int64_t bytes, tasuki_memory* memory);
tasuki_status tasuki_memory_data(tasuki_memory memory, void** data);
/* Gives it back; free operations on it first. Local. */
tasuki_status tasuki_memory_free(tasuki_memory* memory);

/* ---- Operations: making ----------------------------------------------------------------------------------------- */

/* Options of every operation: `path` is "auto", a path, a family, or several with commas between them; `engine` is
 * "auto", "inline", "thread" or, on GPUs, "stream"; null is "auto". `blocks` is the number of thread blocks that an
 * exchange on a GPU may take, 0: as many as make it faster; ranks may differ. */
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

/* ---- Collectives: making ---------------------------------------------------------------------------------------- */

/* An operator of the caller's own: left[i] = left[i] op right[i], for `count` elements of the reduction's type.
 * Associative. It is called by the thread that drives the operation, any number of times for parts of the vector, and
 * must not use Tasuki. Host memory only. */
typedef void (*tasuki_combine)(const void* right, void* left, int64_t count, void* data);

typedef struct tasuki_collective_options {
  size_t size;
  const char* path;
  const char* engine;
  int blocks;
  const char* algorithm; /* by name (docs/collectives.md); null: "auto" */
  int trees;             /* of algorithms over trees, and the two below; 0: chosen by cost */
  int arity;
  int64_t chunk;            /* bytes */
  int ordered;              /* reductions combine in rank order, whatever the algorithm */
  int does_not_commute;     /* the operator below: makes the reduction `ordered` */
  tasuki_combine combine;   /* for TASUKI_OWN */
  const char* combine_name; /* what plans and errors call it; the same on all ranks */
  void* combine_data;       /* is handed to `combine` */
  int where;                /* of a barrier, which has no memory to tell: TASUKI_HOST or TASUKI_DEVICE */
} tasuki_collective_options;
#define TASUKI_COLLECTIVE_OPTIONS_INIT \
  { sizeof(tasuki_collective_options), NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, TASUKI_HOST }

/* Stands for a buffer where a rank works in place. Of allreduce, scan, exscan, reduce-scatter, allgather and alltoall:
 * for `in`, on all ranks; what `in` would hold is then in `out` (allgather: each rank's block where it ends;
 * reduce-scatter: all of it, and the result is at the beginning). On the root: for `in` of reduce and gather, for `out`
 * of scatter. */
#define TASUKI_IN_PLACE ((void*)(intptr_t)-1)

/* All of these: made by all ranks of the context with the same arguments. `in` is only read, `out` only written; they
 * may not overlap, are memory of the host or of GPUs, one kind on all ranks, and stay where they are as long as the
 * operation. Nothing of them is touched before the first start. `type` is a tasuki_type, `op` a tasuki_op; counts are
 * elements of `type` (TASUKI_BYTES: bytes) and may be 0. Blocks of several ranks lie one after the other, in rank
 * order: of `count` elements each, or, where `counts` is not null, of counts[r] for rank r (an entry a rank, the same
 * on all ranks; `count` is not looked at). Collective. */

/* `out` = all ranks' `in`, combined element by element, on every rank. */
tasuki_status tasuki_allreduce_create(tasuki_context context, const void* in, void* out, int64_t count, int type,
                                      int op, const tasuki_collective_options* options, tasuki_operation* allreduce);
/* The same on rank `root` only; `out` of other ranks is not looked at. */
tasuki_status tasuki_reduce_create(tasuki_context context, int root, const void* in, void* out, int64_t count, int type,
                                   int op, const tasuki_collective_options* options, tasuki_operation* reduce);
/* `in` holds a block for every rank; rank r gets block r of all ranks, combined. */
tasuki_status tasuki_reduce_scatter_create(tasuki_context context, const void* in, void* out, int64_t count,
                                           const int64_t* counts, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce_scatter);
/* `out` = the ranks' blocks, on every rank. */
tasuki_status tasuki_allgather_create(tasuki_context context, const void* in, void* out, int64_t count,
                                      const int64_t* counts, int type, const tasuki_collective_options* options,
                                      tasuki_operation* allgather);
/* The same on rank `root` only; `out` of other ranks is not looked at. */
tasuki_status tasuki_gather_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                   const int64_t* counts, int type, const tasuki_collective_options* options,
                                   tasuki_operation* gather);
/* `in` of rank `root` holds a block for every rank; rank r gets block r. `in` of other ranks is not looked at. */
tasuki_status tasuki_scatter_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                    const int64_t* counts, int type, const tasuki_collective_options* options,
                                    tasuki_operation* scatter);
/* `in` holds a block for every rank, `out` gets one of every rank: of rank r, its block for this one. `count` elements
 * each; or, where both lists are given, send_counts[r] go to rank r and receive_counts[r] come from it, which must fit
 * what rank r says. */
tasuki_status tasuki_alltoall_create(tasuki_context context, const void* in, void* out, int64_t count,
                                     const int64_t* send_counts, const int64_t* receive_counts, int type,
                                     const tasuki_collective_options* options, tasuki_operation* alltoall);
/* `out` of rank r = `in` of ranks 0 to r, combined in rank order. */
tasuki_status tasuki_scan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                 const tasuki_collective_options* options, tasuki_operation* scan);
/* `out` of rank r = `in` of ranks 0 to r - 1, combined in rank order; that of rank 0 stays as it is. */
tasuki_status tasuki_exscan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                   const tasuki_collective_options* options, tasuki_operation* exscan);
/* An epoch ends on a rank when all ranks have started it. With option `where` = TASUKI_DEVICE, the same on all ranks,
 * it is a barrier of streams: what a rank has put into its stream after it runs when all ranks' streams have come as
 * far. */
tasuki_status tasuki_barrier_create(tasuki_context context, const tasuki_collective_options* options,
                                    tasuki_operation* barrier);

/* ---- Collectives of memory that is not contiguous: making -------------------------------------------------------- */

/* The same with layouts, which say which bytes the blocks are: of a block, counted from `in` or `out`, or for each rank
 * (`in_layouts`, `out_layouts`: an entry a rank). A layout may differ from rank to rank, and from that of the block
 * that it meets, but both name equally many bytes; in reductions whole elements of `type`. Memory that is written has
 * no byte named twice. What is wrong on one rank fails on all; sizes that do not fit, with the ranks and blocks that
 * differ.
 *
 * A side that is not looked at may have a null layout, or a null list: `out` of reduce and gather and `in` of scatter
 * but on the root, and what TASUKI_IN_PLACE stands for. In place the layouts of `out` hold; of reduce-scatter those of
 * `in`, relative to `out`, and the result is where the first of these bytes are. All ranks use layouts, or none does.
 * They may be freed afterwards. Collective. */
tasuki_status tasuki_allreduce_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, tasuki_layout out_layout, int type, int op,
                                              const tasuki_collective_options* options, tasuki_operation* allreduce);
tasuki_status tasuki_reduce_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce);
/* The blocks have the same sizes on all ranks. */
tasuki_status tasuki_reduce_scatter_create_layouts(tasuki_context context, const void* in,
                                                   const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                                   int type, int op, const tasuki_collective_options* options,
                                                   tasuki_operation* reduce_scatter);
tasuki_status tasuki_allgather_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, const tasuki_layout* out_layouts,
                                              const tasuki_collective_options* options, tasuki_operation* allgather);
tasuki_status tasuki_gather_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, const tasuki_layout* out_layouts,
                                           const tasuki_collective_options* options, tasuki_operation* gather);
tasuki_status tasuki_scatter_create_layouts(tasuki_context context, int root, const void* in,
                                            const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                            const tasuki_collective_options* options, tasuki_operation* scatter);
/* As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own. */
tasuki_status tasuki_alltoall_create_layouts(tasuki_context context, const void* in, const tasuki_layout* in_layouts,
                                             void* out, const tasuki_layout* out_layouts,
                                             const tasuki_collective_options* options, tasuki_operation* alltoall);
tasuki_status tasuki_scan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                         tasuki_layout out_layout, int type, int op,
                                         const tasuki_collective_options* options, tasuki_operation* scan);
tasuki_status tasuki_exscan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                           tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* exscan);

/* ---- Neighbour collectives: making ------------------------------------------------------------------------------- */

/* Whom a rank sends to and whom it hears from, in the order of its blocks; or, where `grid` is not null, the two beside
 * it in each dimension of the grid of ranks, the lower one first, where there is one: 2 * ndims blocks each way
 * (neighbours.hpp). For every time that rank a names b in `to`, b names a in `from`. */
typedef struct tasuki_neighbours {
  int to_count;
  const int* to;
  int from_count;
  const int* from;
  tasuki_grid grid;
} tasuki_neighbours;

/* `in`, `count` elements, to each neighbour; `out` gets a block of each, one after the other, of `count` elements, or,
 * where the list is not null, of receive_counts[i]. Memory of the host or of GPUs, one kind on all ranks. Collective.
 */
tasuki_status tasuki_neighbour_allgather_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                                const void* in, void* out, int64_t count, const int64_t* receive_counts,
                                                int type, const tasuki_transfer_options* options,
                                                tasuki_operation* allgather);
/* `in` holds a block for each neighbour, `out` gets one of each, one after the other: of `count` elements each, or,
 * where both lists are given, of send_counts[i] and receive_counts[i]. Memory as above. Collective. */
tasuki_status tasuki_neighbour_alltoall_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                               const void* in, void* out, int64_t count, const int64_t* send_counts,
                                               const int64_t* receive_counts, int type,
                                               const tasuki_transfer_options* options, tasuki_operation* alltoall);

/* The same with layouts (see collectives above): for the block that goes to all neighbours, and for that of each in
 * `from` (of a grid: 2 * ndims). Collective. */
tasuki_status tasuki_neighbour_allgather_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                        const void* in, tasuki_layout in_layout, void* out,
                                                        const tasuki_layout* out_layouts,
                                                        const tasuki_transfer_options* options,
                                                        tasuki_operation* allgather);
/* As MPI_Neighbor_alltoallw: a layout for the block of each neighbour in `to`, and in `from`. Collective. */
tasuki_status tasuki_neighbour_alltoall_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                       const void* in, const tasuki_layout* in_layouts, void* out,
                                                       const tasuki_layout* out_layouts,
                                                       const tasuki_transfer_options* options,
                                                       tasuki_operation* alltoall);

/* ---- Operations: running ---------------------------------------------------------------------------------------- */

/* Begins the next epoch. Local; fails if the operation is active. */
tasuki_status tasuki_start(tasuki_operation operation);
/* Does what can be done now. `ended`: not 0 if the epoch started last has ended on this rank. Local; does not block. */
tasuki_status tasuki_test(tasuki_operation operation, int* ended);
/* Returns when the epoch started last has ended on this rank; at once if none is active. Fails if a rank that it
 * depends on has died, or at the context's deadline, naming rank, operation and command. */
tasuki_status tasuki_wait(tasuki_operation operation);
/* For operations on GPU memory: the epoch becomes work of `stream` (a cudaStream_t; null: the default stream), in its
 * order and without waiting on the host. run is start and wait in one. Legal while the stream is being captured. */
tasuki_status tasuki_stream_start(tasuki_operation operation, void* stream);
tasuki_status tasuki_stream_wait(tasuki_operation operation, void* stream);
tasuki_status tasuki_stream_run(tasuki_operation operation, void* stream);
tasuki_status tasuki_active(tasuki_operation operation, int* active);
/* Frees everything of the operation. Local; fails while it is active. */
tasuki_status tasuki_operation_free(tasuki_operation* operation);

/* `compute(box, data)` for every boundary box of `field` (cells within `width` of a side), start, `compute` of the
 * interior while the halo travels, wait. Boxes are in local indices, disjoint, together all owned cells. `compute`
 * drives nothing of Tasuki. Only for halos. A width that is narrower than what the halo sends is refused: whoever means
 * it calls tasuki_boundary, tasuki_start, tasuki_interior and tasuki_wait. */
typedef void (*tasuki_compute)(const tasuki_box* box, void* data);
tasuki_status tasuki_overlap(tasuki_operation halo, tasuki_field field, const tasuki_width* width,
                             tasuki_compute compute, void* data);

/* ---- Operations: looking ---------------------------------------------------------------------------------------- */

/* The pieces of this rank, a table: bytes, pattern, path, predicted time, and why others were not taken. Local. */
tasuki_status tasuki_explain(tasuki_operation operation, char** text);
/* This rank's plan, for people and as JSON; both can be read back exactly (plan.hpp). Local. */
tasuki_status tasuki_plan_text(tasuki_operation operation, char** text);
tasuki_status tasuki_plan_json(tasuki_operation operation, char** json);
/* Bytes that the plan and its lowered form occupy on this rank. Local. */
tasuki_status tasuki_plan_memory(tasuki_operation operation, int64_t* bytes);
/* Verifies the plans of all ranks together for `epochs` epochs (0: enough to find every hazard). `ok`: not 0 if nothing
 * was found; `report`, which may be null, gets a text of what was. A problem is no failure of the call. Collective. */
tasuki_status tasuki_verify(tasuki_operation operation, int epochs, int* ok, char** report);
/* The same for `count` plans, rank by rank, each as text or JSON, from anywhere. Local, without MPI. */
tasuki_status tasuki_verify_plans(int count, const char* const* plans, int epochs, int* ok, char** report);

/* ---- GPUs ------------------------------------------------------------------------------------------------------- */

/* Why this process cannot use a GPU; empty if it can. Local. */
tasuki_status tasuki_why_no_gpu(char** why);
/* Settles which GPU this rank uses, and makes it the current one (device.hpp). Collective; fails on every rank if one
 * has no GPU. */
tasuki_status tasuki_use_gpu(tasuki_context context, int* ordinal);
/* Waits on the host for the work in `stream`; fails if an exchange in it has. Local. */
tasuki_status tasuki_synchronize(tasuki_context context, void* stream);

/* A second stream, so that an exchange overlaps with computation: call branch, put the exchange into the stream that it
 * gives and the interior's kernel into the first stream, then call join. All calls are local and legal while the stream
 * is being captured. */
tasuki_status tasuki_fork_create(tasuki_fork* fork);
tasuki_status tasuki_fork_branch(tasuki_fork fork, void* from, void** stream);
tasuki_status tasuki_fork_join(tasuki_fork fork, void* into);
tasuki_status tasuki_fork_free(tasuki_fork* fork);

/* Captures what `enqueue(data)` puts into `stream` (any but the default), to be replayed by launch (graph.hpp). A
 * status other than TASUKI_OK from `enqueue` ends the capture and is returned. Local. */
typedef int (*tasuki_enqueue)(void* data);
tasuki_status tasuki_graph_create(void* stream, tasuki_enqueue enqueue, void* data, tasuki_graph* graph);
tasuki_status tasuki_graph_launch(tasuki_graph graph, void* stream);
tasuki_status tasuki_graph_free(tasuki_graph* graph);

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}
#endif

#endif
