/* What the C that tasuki-cc generates for GPUs calls beyond xmp_translated.h and xacc.h: where data are on the GPU, and
 * kernels. Programs by hand do not need it. The functions are defined in xacc_data.h, of which every translated file
 * compiles a part.
 *
 * With XACC_EMULATED kernels are loops of the host. A distributed array's memory on the GPU is its memory on the host
 * then; other variables have a second place in memory, so that what is not copied is missed.
 */
#ifndef TASUKI_XACC_TRANSLATED_H
#define TASUKI_XACC_TRANSLATED_H

#include <stdint.h>

#include "xmp_translated.h"
#ifndef XACC_EMULATED
#include "xacc.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifdef XACC_EMULATED
enum { XACC_SYNC = -1 };
static inline int xacc_use_gpu(int* number) {
  return (void)number, 0;
}
static inline int xacc_reflect(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int queue) {
  return (void)queue, xmp_reflect(count, arrays, options);
}
static inline int xacc_reflect_async(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int id) {
  return xmp_reflect_async(count, arrays, options, id);
}
static inline int xacc_reflect_init(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return xmp_reflect_init(count, arrays, options);
}
static inline int xacc_reflect_do(int count, const xmp_desc_t arrays[], int queue) {
  return (void)queue, xmp_reflect_do(count, arrays);
}
static inline int xacc_reflect_do_async(int count, const xmp_desc_t arrays[], int id) {
  return xmp_reflect_do_async(count, arrays, id);
}
static inline int xacc_reduce_shadow(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options,
                                     int queue) {
  return (void)queue, xmp_reduce_shadow(count, arrays, options);
}
static inline int xacc_reduction(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue) {
  return (void)queue, xmp_reduction(op, count, variables, on);
}
static inline int xacc_bcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, int queue) {
  return (void)queue, xmp_bcast(count, variables, from, on);
}
static inline int xacc_reduction_async(int op, int count, const xmp_variable variables[], xmp_desc_t on, int id) {
  return xmp_reduction_async(op, count, variables, on, id);
}
static inline int xacc_reduction_loc(int op, xmp_variable v, int locations, const xmp_variable location[],
                                     xmp_desc_t on, int queue) {
  return (void)queue, xmp_reduction_loc(op, v, locations, location, on);
}
static inline int xacc_bcast_async(int count, const xmp_variable variables[], int from, xmp_desc_t on, int id) {
  return xmp_bcast_async(count, variables, from, on, id);
}
static inline int xacc_bind(xmp_desc_t array, void* memory) {
  return xmp_bind(array, memory);
}
static inline int xacc_gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from,
                             const xmp_range from_section[], int queue) {
  return (void)queue, xmp_gmove(to, to_section, from, from_section);
}
static inline int xacc_gmove_async(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from,
                                   const xmp_range from_section[], int id) {
  return xmp_gmove_async(to, to_section, from, from_section, id);
}
static inline int xacc_barrier(xmp_desc_t on) {
  return xmp_barrier(on);
}
enum { XACC_BESIDE = 0x7A5BFFF }; /* an id that programs do not have */
static inline int xacc_reflect_beside(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return xmp_reflect_async(count, arrays, options, XACC_BESIDE);
}
static inline int xacc_reflect_do_beside(int count, const xmp_desc_t arrays[]) {
  return xmp_reflect_do_async(count, arrays, XACC_BESIDE);
}
static inline int xacc_under_way(void) {
  return 1;
}
static inline int xacc_join(void) {
  const int id = XACC_BESIDE;
  return xmp_wait_async(1, &id);
}
static inline int xacc_clear(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue) {
  return (void)queue, xmp_clear(op, count, variables, on), XMP_OK;
}
#else
/* xmp_clear of variables on the GPU, in the queue's stream. Local. */
int xacc_clear(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue);
/* A reflect after what is in the default stream and in queues, in a stream beside them; what comes into them after
 * xacc_join follows it. The host waits for nothing. */
int xacc_reflect_beside(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options);
int xacc_reflect_do_beside(int count, const xmp_desc_t arrays[]);
int xacc_join(void);
/* Whether reflects of this rank that have something to send or receive run beside, and xacc_join has yet to come.
 * Local. */
int xacc_under_way(void);
/* Waits for the default stream and all queues. Local. Fails as communication does that failed there. */
int xacc_settle(void);
#endif

/* A queue: the default stream, without waiting for what is put there. */
enum { XACC_DEFAULT = 0x7A5BFFE }; /* one that programs do not have; those below 0 are refused */
/* The queue, which has a stream from now on. Local. */
int xacc_queue(int queue);

/* Before main, on all nodes: chooses the GPU. */
void xacc_start(void);

/* Of `data`, `enter data`, and clauses of kernels; `present` is told when the data are not on the GPU. Data that are
 * there already are counted, and not copied. */
enum { XACC_CREATE = 0, XACC_COPYIN = 1, XACC_COPYOUT = 2, XACC_PRESENT = 4 };
/* A distributed array: all that the node has of it. Its memory on the GPU stays until the array is given up. Collective
 * over its nodes. `section`: what is copied, a range of global indices for each dimension; null: all. */
void xacc_enter(const xmp_placed* array, const char* name, int what, const xmp_range section[]);
void xacc_leave(const xmp_placed* array, const char* name, int what, const xmp_range section[]);
/* `update`. Local. */
void xacc_update(const xmp_placed* array, const char* name, int to_device, const xmp_range section[]);
/* Other variables. Local. */
void xacc_enter_memory(const void* at, int64_t bytes, const char* name, int what);
void xacc_leave_memory(const void* at, int64_t bytes, const char* name, int what);
void xacc_update_memory(const void* at, int64_t bytes, const char* name, int to_device);
/* Where a variable is on the GPU. Local. */
void* xacc_address(const void* at, const char* name);

/* A distributed array on the GPU, as xmp_placed is on the host. Local. */
typedef struct {
  void* origin;
  int64_t extents[XMP_MAX_DIMS];
} xacc_view;
xacc_view xacc_view_of(const xmp_placed* array, const char* name);

/* `wait`: all queues and the default stream, or those that are named. Local. */
void xacc_wait(int count, const int queues[]);

/* A loop of the host whose iterations only give work to the default stream, always the same: the fourth is recorded as
 * a graph, and each from then on is a launch of it. With XACC_EMULATED all run as they stand. Local. */
typedef struct {
  int begun;   /* iterations */
  void* graph; /* once it is recorded */
} xacc_repeat;
/* Before an iteration: 1 if it has been launched, and is not to run. */
int xacc_launches(xacc_repeat* loop);
/* After an iteration that ran, and after the loop. */
void xacc_recorded(xacc_repeat* loop);
void xacc_forget(xacc_repeat* loop);

/* A nest of loops: its ranges, the arrays, addresses and values that it refers to, and where results of reductions are
 * combined with: variables of the host, or what xacc_address says of all. `queue` XACC_SYNC: the default stream.
 * `threads`: of a block; 0: as it is best. */
typedef void xacc_kernel(const xmp_range ranges[], const xacc_view views[], void* const addresses[],
                         const void* const values[], void* const results[], int queue, int threads);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
