/* What the kernels that tasuki-cc generates are made of (C++17): views of distributed arrays, launches, reductions in a
 * fixed order, and data on the GPU. For CUDA; with XACC_EMULATED for the host, block by block and thread by thread, so
 * that results are the same bits.
 */
#ifndef TASUKI_XACC_KERNELS_H
#define TASUKI_XACC_KERNELS_H

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "xacc_translated.h"

#ifdef XACC_EMULATED
#define TSK_DEVICE
#define TSK_BOTH
#else
#include <cuda_runtime.h>
#define TSK_DEVICE __device__
#define TSK_BOTH __host__ __device__
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
// Before the host reads: what the default stream and queues have has ended, and communication that failed there is
// told.
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
inline cudaStream_t stream_of(int queue) {
  if (queue == XACC_SYNC) return nullptr;
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

// ---- views
template <class T, int N>
struct Rows {
  T* at;
  const long long* stride;
  TSK_DEVICE auto operator[](long long i) const { return Rows<T, N - 1>{at + i * stride[0], stride + 1}; }
};
template <class T>
struct Rows<T, 1> {
  T* at;
  const long long* stride;
  TSK_DEVICE T& operator[](long long i) const { return at[i]; }
};
/* Element (i, j, ...) of the whole array is at [i][j]. */
template <class T, int N>
struct View {
  T* at;
  long long stride[N];
  explicit View(const xacc_view& v) : at(static_cast<T*>(v.origin)) {
    stride[N - 1] = 1;
    for (int d = N - 1; d > 0; --d) stride[d - 1] = stride[d] * v.extents[d];
  }
  TSK_DEVICE decltype(auto) operator[](long long i) const {
    if constexpr (N == 1)
      return static_cast<T&>(at[i]);
    else
      return Rows<T, N - 1>{at + i * stride[0], stride + 1};
  }
};

// ---- atomic
#ifdef XACC_EMULATED
template <class T, class V>
void atomic_add(T* at, V value) {
  *at += value;
}
#else
template <class T, class V>
__device__ void atomic_add(T* at, V value) {
  if constexpr (sizeof(T) == 8 && std::numeric_limits<T>::is_integer)
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  else
    atomicAdd(at, static_cast<T>(value));
}
#endif

// ---- launches
struct None {};
/* What a maximum and a minimum begin with; device code may use constants of the host, and not its functions. */
template <class T>
struct Bounds {
  using Limits = std::numeric_limits<T>;
  static constexpr T least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  static constexpr T most = Limits::has_infinity ? Limits::infinity() : Limits::max();
};
/* The iterations of a nest, the innermost loop along x, and blocks and threads over them. */
template <int N>
struct Space {
  long long first[N], step[N], count[N];
  long long n[3];       // of iterations along x, y, z
  unsigned threads[2];  // of a block
  unsigned blocks[3];
  Space(const xmp_range* ranges, int wanted, bool reduces) {
    n[0] = n[1] = n[2] = 1;
    for (int d = 0; d < N; ++d) {
      first[d] = ranges[d].first;
      step[d] = ranges[d].step;
      count[d] = ranges[d].end > ranges[d].first ? (ranges[d].end - ranges[d].first + step[d] - 1) / step[d] : 0;
      n[std::min(N - 1 - d, 2)] *= count[d];
    }
    unsigned all = 32;
    while (all * 2 <= static_cast<unsigned>(wanted > 0 ? std::min(wanted, 1024) : 128)) all *= 2;
    threads[0] = 32;
    while (threads[0] < all && threads[0] < n[0]) threads[0] *= 2;
    threads[1] = all / threads[0];
    blocks[0] = over(n[0], threads[0], 1 << 20);
    blocks[1] = over(n[1], threads[1], 65535);
    blocks[2] = over(n[2], 1, 65535);
    if (reduces) {  // few results, each of many iterations
      blocks[0] = std::min(blocks[0], 4096U);
      blocks[1] = std::min(blocks[1], std::max(1U, 4096U / blocks[0]));
      blocks[2] = std::min(blocks[2], std::max(1U, 4096U / (blocks[0] * blocks[1])));
    }
  }
  static unsigned over(long long items, unsigned each, long long most) {
    return static_cast<unsigned>(std::max(1LL, std::min((items + each - 1) / each, most)));
  }
  bool empty() const { return n[0] == 0 || n[1] == 0 || n[2] == 0; }
  std::size_t all_blocks() const { return static_cast<std::size_t>(blocks[0]) * blocks[1] * blocks[2]; }
};

/* All iterations of one thread, in their order. */
template <int N, class Body, class Result>
TSK_DEVICE void run_thread(const Body& body, const Space<N>& s, const unsigned (&block)[3], unsigned x, unsigned y,
                           Result& result) {
  for (long long k = block[2]; k < s.n[2]; k += s.blocks[2])
    for (long long j = static_cast<long long>(block[1]) * s.threads[1] + y; j < s.n[1];
         j += static_cast<long long>(s.blocks[1]) * s.threads[1])
      for (long long i = static_cast<long long>(block[0]) * s.threads[0] + x; i < s.n[0];
           i += static_cast<long long>(s.blocks[0]) * s.threads[0]) {
        long long index[N];
        index[N - 1] = s.first[N - 1] + i * s.step[N - 1];
        if constexpr (N > 1) index[N - 2] = s.first[N - 2] + j * s.step[N - 2];
        if constexpr (N == 3) index[0] = s.first[0] + k * s.step[0];
        if constexpr (N > 3) {
          long long rest = k;
          for (int d = N - 3; d >= 0; --d) {
            index[d] = s.first[d] + rest % s.count[d] * s.step[d];
            rest /= s.count[d];
          }
        }
        body(index, result);
      }
}

constexpr unsigned kLast = 256;  // threads that combine the blocks' results

#ifdef XACC_EMULATED
template <class Body>
void combine(std::vector<typename Body::Result>& all) {
  for (std::size_t half = all.size() / 2; half > 0; half /= 2)
    for (std::size_t t = 0; t < half; ++t) Body::add(all[t], all[t + half]);
}

template <int N, class Body>
typename Body::Result run(const Body& body, const xmp_range* ranges, int, int threads) {
  using Result = typename Body::Result;
  const Space<N> s(ranges, threads, Body::kReduces);
  Result none{};
  if constexpr (Body::kReduces) none = Body::none();
  if (s.empty()) return none;
  std::vector<Result> last(kLast, none);
  std::size_t number = 0;
  for (unsigned z = 0; z < s.blocks[2]; ++z)
    for (unsigned y = 0; y < s.blocks[1]; ++y)
      for (unsigned x = 0; x < s.blocks[0]; ++x, ++number) {
        std::vector<Result> results(s.threads[0] * s.threads[1], none);
        const unsigned block[3] = {x, y, z};
        for (unsigned t = 0; t < results.size(); ++t)
          run_thread(body, s, block, t % s.threads[0], t / s.threads[0], results[t]);
        if constexpr (Body::kReduces) {
          combine<Body>(results);
          Body::add(last[number % kLast], results[0]);
        }
      }
  if constexpr (Body::kReduces) combine<Body>(last);
  return last[0];
}

template <int N, class Body>
void run_in_place(const Body& body, const xmp_range* ranges, void* const* results, int queue, int threads) {
  Body::put(run<N>(body, ranges, queue, threads), results);
}
#else
template <class Body>
__device__ void combine(typename Body::Result* all, unsigned count, unsigned thread) {
  for (unsigned half = count / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) Body::add(all[thread], all[thread + half]);
  }
}

template <int N, class Body>
__global__ void run_blocks(const Body body, const Space<N> s, typename Body::Result* partial) {
  using Result = typename Body::Result;
  const unsigned block[3] = {blockIdx.x, blockIdx.y, blockIdx.z};
  if constexpr (Body::kReduces) {
    __shared__ Result results[1024];
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    Result mine = Body::none();
    run_thread(body, s, block, threadIdx.x, threadIdx.y, mine);
    results[thread] = mine;
    combine<Body>(results, blockDim.x * blockDim.y, thread);
    if (thread == 0)
      partial[(static_cast<std::size_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = results[0];
  } else {
    Result none;
    run_thread(body, s, block, threadIdx.x, threadIdx.y, none);
  }
}

// Of all blocks' results, for thread 0.
template <class Body>
__device__ const typename Body::Result& last_of(const typename Body::Result* partial, std::size_t count) {
  using Result = typename Body::Result;
  __shared__ Result results[kLast];
  Result mine = Body::none();
  for (std::size_t n = threadIdx.x; n < count; n += kLast) Body::add(mine, partial[n]);
  results[threadIdx.x] = mine;
  combine<Body>(results, kLast, threadIdx.x);
  return results[0];
}
template <class Body>
__global__ void run_last(typename Body::Result* partial, std::size_t count) {
  const typename Body::Result& all = last_of<Body>(partial, count);
  if (threadIdx.x == 0) partial[0] = all;
}

/* Addresses of variables on the GPU, as a kernel takes them. */
template <int N>
struct Places {
  void* at[N];
};
template <class Body>
__global__ void run_last_in_place(typename Body::Result* partial, std::size_t count, Places<Body::kResults> results) {
  const typename Body::Result& all = last_of<Body>(partial, count);
  if (threadIdx.x == 0) Body::put(all, results.at);
}

// Room for the results of a kernel's blocks. Each queue has its own, because kernels of two queues run side by side.
template <class Body>
typename Body::Result* room_for(std::size_t blocks, int queue) {
  struct Room {
    typename Body::Result* at;
    std::size_t blocks;
  };
  static std::map<int, Room> rooms;
  Room& room = rooms[queue];
  if (room.blocks < blocks) {
    if (room.at != nullptr) release(room.at);
    room = {static_cast<typename Body::Result*>(allocate(blocks * sizeof(*room.at))), blocks};
  }
  return room.at;
}

// All iterations, as work of the queue; gives where the blocks' results will be.
template <int N, class Body>
typename Body::Result* start(const Body& body, const Space<N>& s, int queue) {
  typename Body::Result* partial = nullptr;
  if constexpr (Body::kReduces) partial = room_for<Body>(s.all_blocks(), queue);
  const dim3 blocks(s.blocks[0], s.blocks[1], s.blocks[2]);
  const dim3 block(s.threads[0], s.threads[1]);
  // It would part the brackets of a launch.
  // clang-format off
  run_blocks<N><<<blocks, block, 0, stream_of(queue)>>>(body, s, partial);
  // clang-format on
  return partial;
}

// Combines variables on the GPU with the nest's results, and returns at once.
template <int N, class Body>
void run_in_place(const Body& body, const xmp_range* ranges, void* const* results, int queue, int threads) {
  const Space<N> s(ranges, threads, true);
  if (s.empty()) return;
  Places<Body::kResults> places;
  std::copy(results, results + Body::kResults, places.at);
  typename Body::Result* const partial = start(body, s, queue);
  // clang-format off
  run_last_in_place<Body><<<1, kLast, 0, stream_of(queue)>>>(partial, s.all_blocks(), places);
  // clang-format on
  check(cudaGetLastError(), "a kernel");
}

// Returns at once, unless there is a result.
template <int N, class Body>
typename Body::Result run(const Body& body, const xmp_range* ranges, int queue, int threads) {
  using Result = typename Body::Result;
  const Space<N> s(ranges, threads, Body::kReduces);
  Result result{};
  if constexpr (Body::kReduces) result = Body::none();
  if (s.empty()) return result;
  Result* const partial = start(body, s, queue);
  if constexpr (Body::kReduces) {
    // clang-format off
    run_last<Body><<<1, kLast, 0, stream_of(queue)>>>(partial, s.all_blocks());
    // clang-format on
    check(cudaMemcpyAsync(&result, partial, sizeof(Result), cudaMemcpyDeviceToHost, stream_of(queue)), "a reduction");
    check(cudaStreamSynchronize(stream_of(queue)), "a reduction");
  }
  check(cudaGetLastError(), "a kernel");
  return result;
}
#endif

}  // namespace tsk

// ---- what the translated C calls; one copy of each is kept
#define TSK_CALLED extern "C" __attribute__((used, visibility("default"))) inline

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

#endif
