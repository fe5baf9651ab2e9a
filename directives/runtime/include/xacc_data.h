/* Data on the GPU, of the programs that tasuki-cc generates (C++17): memory, streams of queues, which variables are
 * there, and the functions of xacc_translated.h. Part of xacc_kernels.h. With XACC_EMULATED the host is in the GPU's
 * place.
 */
#ifndef TASUKI_XACC_DATA_H
#define TASUKI_XACC_DATA_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "xacc_translated.h"

#ifndef XACC_EMULATED
#include <cuda_runtime.h>
#endif

namespace tsk {

// ---- the GPU, or the host in its place
#ifdef XACC_EMULATED
inline void settle() {}
inline void* allocate(std::size_t bytes) {
  return std::malloc(bytes > 0 ? bytes : 1);
}
inline void release(void* at) {
  std::free(at);
}
inline void copy(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#else
inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(EXIT_FAILURE);
}
// Before the host reads: waits for the default stream and all queues, and ends the program if communication failed
// there.
inline void settle() {
  xacc_settle();
}
inline void* allocate(std::size_t bytes) {
  void* at = nullptr;
  check(cudaMalloc(&at, bytes > 0 ? bytes : 1), "memory on the GPU");
  return at;
}
inline void release(void* at) {
  check(cudaFree(at), "memory on the GPU");
}
// After all that is in queues, which do not run beside the default stream.
inline void copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "a copy between host and GPU");
}
inline std::map<int, cudaStream_t>& queues() {
  static std::map<int, cudaStream_t> all;
  return all;
}
// What runs without a queue. Null: CUDA's default stream. While an iteration is recorded, the stream that CUDA records,
// as it does not record its default stream.
inline cudaStream_t& default_stream() {
  static cudaStream_t stream = nullptr;
  return stream;
}
inline void set_default_stream(cudaStream_t stream) {
  default_stream() = stream;
  xacc_set_queue(XACC_DEFAULT, stream);
}
inline cudaStream_t stream_of(int queue) {
  if (queue == XACC_SYNC || queue == XACC_DEFAULT) return default_stream();
  const auto found = queues().find(queue);
  if (found != queues().end()) return found->second;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "async");
  xacc_set_queue(queue, stream);
  return queues()[queue] = stream;
}
#endif

[[noreturn]] inline void fail(const char* name, const char* what) {
  std::fprintf(stderr, "rank %d: '%s' %s\n", xmpc_all_node_num(), name, what);
  std::exit(EXIT_FAILURE);
}

// ---- variables on the GPU
struct Present {
  const char* at;
  std::size_t bytes;
  char* device;
  int count;
};
inline std::map<const char*, Present>& present() {
  static std::map<const char*, Present> all;
  return all;
}
// What holds these bytes, or null. Bytes that are there in part end the program.
inline Present* holder(const void* memory, std::size_t bytes, const char* name) {
  const char* const at = static_cast<const char*>(memory);
  auto after = present().upper_bound(at);
  if (after != present().begin()) {
    Present& before = std::prev(after)->second;
    if (at >= before.at && at + bytes <= before.at + before.bytes) return &before;
    if (at < before.at + before.bytes)
      fail(name, "is on the GPU in part only; name all of it in the first data clause");
  }
  if (after != present().end() && after->first < at + bytes)
    fail(name, "is on the GPU in part only; name all of it in the first data clause");
  return nullptr;
}
inline std::map<xmp_desc_t, int>& arrays() {
  static std::map<xmp_desc_t, int> all;
  return all;
}

#ifdef XACC_EMULATED
inline void copy_array(const xmp_placed&, const xmp_range*, bool) {}
#else
// Rows of the section that are here, shadow included.
inline void copy_rows(const xmp_view& v, const xmp_range* section, int dim, std::int64_t first, std::int64_t element,
                      bool to_device) {
  std::int64_t lower = 0;
  std::int64_t upper = v.extents[dim];
  if (section != nullptr) {
    lower = std::max<std::int64_t>(lower, section[dim].first - v.base[dim]);
    upper = section[dim].end == XMP_OPEN_END ? upper : std::min<std::int64_t>(upper, section[dim].end - v.base[dim]);
  }
  if (lower >= upper) return;
  const bool rest_whole = [&] {
    for (int d = dim + 1; d < v.ndims && section != nullptr; ++d)
      if (section[d].first > v.base[d] || section[d].end < v.base[d] + v.extents[d]) return false;
    return true;
  }();
  if (!rest_whole) {
    for (std::int64_t i = lower; i < upper; ++i)
      copy_rows(v, section, dim + 1, first + i * v.strides[dim], element, to_device);
    return;
  }
  const std::int64_t at = (first + lower * v.strides[dim]) * element;
  char* const host = static_cast<char*>(v.data) + at;
  char* const device = static_cast<char*>(v.device) + at;
  const std::size_t bytes = static_cast<std::size_t>((upper - lower) * v.strides[dim] * element);
  copy(to_device ? device : host, to_device ? host : device, bytes);
}
inline void copy_array(const xmp_placed& array, const xmp_range* section, bool to_device) {
  xmp_view v;
  xmp_get_view(array.desc, &v);
  std::int64_t elements = 1;
  for (int d = 0; d < v.ndims; ++d) elements *= v.extents[d];
  if (v.bytes > 0) copy_rows(v, section, 0, 0, v.bytes / elements, to_device);
}
#endif

}  // namespace tsk

// ---- what the translated C calls; one copy of each is kept
#define TSK_CALLED extern "C" __attribute__((used, visibility("default"))) inline

static_assert(XACC_DEFAULT >= 0, "xacc_set_queue refuses it");

TSK_CALLED void xacc_start(void) {
  static bool done = false;
  if (!done) xacc_use_gpu(nullptr);
#ifndef XACC_EMULATED
  if (!done) xacc_set_queue(XACC_DEFAULT, nullptr);
#endif
  done = true;
}
TSK_CALLED void xacc_enter(const xmp_placed* array, const char* name, int what, const xmp_range section[]) {
  int& count = tsk::arrays()[array->desc];
  if (count == 0 && (what & XACC_PRESENT) != 0) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  if (count++ > 0) return;
#ifndef XACC_EMULATED
  xmp_view view;
  xmp_get_view(array->desc, &view);
  if (view.device == nullptr) xacc_allocate(array->desc, nullptr);
#endif
  if ((what & XACC_COPYIN) != 0) tsk::copy_array(*array, section, true);
}
TSK_CALLED void xacc_leave(const xmp_placed* array, const char* name, int what, const xmp_range section[]) {
  int& count = tsk::arrays()[array->desc];
  if (count == 0) tsk::fail(name, "is not on the GPU, so that it cannot leave it");
  if (--count > 0 || (what & XACC_COPYOUT) == 0) return;
  tsk::settle();
  tsk::copy_array(*array, section, false);
}
TSK_CALLED void xacc_update(const xmp_placed* array, const char* name, int to_device, const xmp_range section[]) {
  if (tsk::arrays()[array->desc] == 0) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  if (to_device == 0) tsk::settle();
  tsk::copy_array(*array, section, to_device != 0);
}
TSK_CALLED void xacc_enter_memory(const void* at, int64_t bytes, const char* name, int what) {
  const auto size = static_cast<std::size_t>(bytes);
  if (tsk::Present* const found = tsk::holder(at, size, name)) {
    ++found->count;
    return;
  }
  if ((what & XACC_PRESENT) != 0) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  char* const device = static_cast<char*>(tsk::allocate(size));
  const char* const host = static_cast<const char*>(at);
  tsk::present()[host] = {host, size, device, 1};
  if ((what & XACC_COPYIN) != 0) tsk::copy(device, host, size);
}
TSK_CALLED void xacc_leave_memory(const void* at, int64_t bytes, const char* name, int what) {
  const auto size = static_cast<std::size_t>(bytes);
  tsk::Present* const found = tsk::holder(at, size, name);
  if (found == nullptr) tsk::fail(name, "is not on the GPU, so that it cannot leave it");
  if (--found->count > 0) return;
  tsk::settle();
  const std::size_t offset = static_cast<std::size_t>(static_cast<const char*>(at) - found->at);
  if ((what & XACC_COPYOUT) != 0) tsk::copy(const_cast<void*>(at), found->device + offset, size);
  tsk::release(found->device);
  tsk::present().erase(found->at);
}
TSK_CALLED void* xacc_address(const void* at, const char* name) {
  const tsk::Present* const found = tsk::holder(at, 1, name);
  if (found == nullptr) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  return found->device + (static_cast<const char*>(at) - found->at);
}
TSK_CALLED void xacc_update_memory(const void* at, int64_t bytes, const char* name, int to_device) {
  const auto size = static_cast<std::size_t>(bytes);
  if (tsk::holder(at, size, name) == nullptr) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  void* const device = xacc_address(at, name);
  if (to_device != 0) return tsk::copy(device, at, size);
  tsk::settle();
  tsk::copy(const_cast<void*>(at), device, size);
}
TSK_CALLED xacc_view xacc_view_of(const xmp_placed* array, const char* name) {
  if (tsk::arrays()[array->desc] == 0) tsk::fail(name, "is not on the GPU; name it in a data clause before");
  xacc_view view{};
  std::copy(array->extents, array->extents + XMP_MAX_DIMS, view.extents);
#ifdef XACC_EMULATED
  view.origin = array->origin;
#else
  xmp_view v;
  xmp_get_view(array->desc, &v);
  const auto moved = reinterpret_cast<std::uintptr_t>(v.data) - reinterpret_cast<std::uintptr_t>(array->origin);
  view.origin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(v.device) - moved);
#endif
  return view;
}
TSK_CALLED int xacc_queue(int queue) {
#ifndef XACC_EMULATED
  tsk::stream_of(queue);
#endif
  return queue;
}
TSK_CALLED void xacc_wait(int count, const int queues[]) {
#ifdef XACC_EMULATED
  (void)count, (void)queues;
#else
  if (count == 0) tsk::settle();
  for (int n = 0; n < count; ++n) tsk::check(cudaStreamSynchronize(tsk::stream_of(queues[n])), "wait");
#endif
}
TSK_CALLED int xacc_launches(xacc_repeat* loop) {
#ifdef XACC_EMULATED
  (void)loop;
#else
  if (loop->graph != nullptr) {
    tsk::check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(loop->graph), nullptr), "a recorded loop");
    return 1;
  }
  // By then plans are made, kernels are loaded and memory is there; what is recorded may do nothing of that.
  constexpr int kRecorded = 4;
  if (++loop->begun == kRecorded) {
    static cudaStream_t stream = nullptr;
    if (stream == nullptr) tsk::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a recorded loop");
    tsk::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "a recorded loop");
    tsk::set_default_stream(stream);
  }
#endif
  return 0;
}
TSK_CALLED void xacc_recorded(xacc_repeat* loop) {
#ifdef XACC_EMULATED
  (void)loop;
#else
  if (tsk::default_stream() == nullptr) return;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(tsk::default_stream(), &graph);
  tsk::set_default_stream(nullptr);
  tsk::check(ended, "a loop that cannot be recorded (--no-graphs leaves it as it is)");
  // A reflect that runs beside keeps its priority.
  tsk::check(cudaGraphInstantiateWithFlags(&ready, graph, cudaGraphInstantiateFlagUseNodePriority), "a recorded loop");
  tsk::check(cudaGraphDestroy(graph), "a recorded loop");
  tsk::check(cudaGraphLaunch(ready, nullptr), "a recorded loop");  // this iteration
  loop->graph = ready;
#endif
}
TSK_CALLED void xacc_forget(xacc_repeat* loop) {
#ifdef XACC_EMULATED
  (void)loop;
#else
  // CUDA keeps what still runs.
  if (loop->graph != nullptr)
    tsk::check(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(loop->graph)), "a recorded loop");
#endif
}

#endif
