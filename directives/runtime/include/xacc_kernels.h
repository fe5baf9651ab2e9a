/* What the kernels that tasuki-cc generates are made of (C++17): views of distributed arrays, launches, and reductions
 * in a fixed order. For CUDA; with XACC_EMULATED for the host, block by block and thread by thread, so that results are
 * the same bits.
 */
#ifndef TASUKI_XACC_KERNELS_H
#define TASUKI_XACC_KERNELS_H

#include <math.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "xacc_data.h"

#ifdef XACC_EMULATED
#define TSK_DEVICE
#define TSK_BOTH
#else
#define TSK_DEVICE __device__
#define TSK_BOTH __host__ __device__
#endif

namespace tsk {

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
    if (half >= 32)
      __syncthreads();
    else
      __syncwarp();  // what is left belongs to the first warp
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

#endif
