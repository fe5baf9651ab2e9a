/* XcalableACC's directives as functions of C (C11): those of xmp.h with the clause `acc`, on memory of this node's GPU.
 *
 * An array may have memory on the host and on the GPU. These functions take the GPU's, those of xmp.h the host's; none
 * copies from one to the other. Variables of reductions and broadcasts are pointers to memory of the GPU too.
 *
 * A queue is what OpenACC's `async(n)` names. `xacc_set_queue` gives it a stream (`acc_get_cuda_stream(n)`).
 * With a queue, communication becomes work of its stream, after what is there already, and the call returns at once.
 * Reductions and broadcasts too: their variables are read and written by the stream. All nodes name the same queue.
 * XACC_SYNC: it runs after the work that the default stream already has, and the call returns when it has ended.
 *
 * Where there is no GPU, or no CUDA in the build, they fail on every node with XMP_NOT_POSSIBLE and say why.
 */
#ifndef TASUKI_XACC_H
#define TASUKI_XACC_H

#include "xmp.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

enum { XACC_SYNC = -1 };

/* Settles which GPU this node uses, makes it CUDA's current device, and says its ordinal (`number` may be null): the
 * one that the process has made current, if that is not the first one, else one by the node's place on its host. Later
 * calls only say the ordinal. What is made before it in CUDA, as streams, may be another GPU's. Collective over all
 * nodes; the first xacc_allocate or communication does the same. */
int xacc_use_gpu(int* number);

/* `stream` is a cudaStream_t of this node's GPU; null is the default stream. A queue that has a stream may get another
 * one when what it was given has ended. Local. */
int xacc_set_queue(int queue, void* stream);

/* Memory on the GPU for the local elements, as xmp_allocate and xmp_bind. xacc_allocate is collective over the array's
 * nodes. */
int xacc_allocate(xmp_desc_t array, void** memory);
int xacc_bind(xmp_desc_t array, void* memory);
/* `update device`, `update self`: all local elements, shadow included. Local. */
int xacc_update_device(xmp_desc_t array);
int xacc_update_self(xmp_desc_t array);

int xacc_reflect(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int queue);
int xacc_reflect_async(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int id);
int xacc_reflect_init(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options);
int xacc_reflect_do(int count, const xmp_desc_t arrays[], int queue);
int xacc_reflect_do_async(int count, const xmp_desc_t arrays[], int id);
int xacc_reduce_shadow(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int queue);
const char* xacc_reflect_explain(xmp_desc_t array);

int xacc_gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[], int queue);
int xacc_gmove_async(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[],
                     int id);
int xacc_transpose(xmp_desc_t to, xmp_desc_t from, int queue);
int xacc_matmul(xmp_desc_t c, xmp_desc_t a, xmp_desc_t b, int queue);
int xacc_reduction(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue);
int xacc_reduction_async(int op, int count, const xmp_variable variables[], xmp_desc_t on, int id);
int xacc_reduction_loc(int op, xmp_variable v, int locations, const xmp_variable location[], xmp_desc_t on, int queue);
int xacc_bcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, int queue);
int xacc_bcast_async(int count, const xmp_variable variables[], int from, xmp_desc_t on, int id);
/* Also waits until the GPU has ended what is in the default stream and in all queues. */
int xacc_barrier(xmp_desc_t on);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
