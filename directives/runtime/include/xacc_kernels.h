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
/* The iterations of a nest, the innermost loop along x, and blocks of threads over them. A thread has one iteration: a
 * loop over several would keep its counters in registers, and fewer threads would fit on the GPU at a time. */
template <int N>
struct Space {
  long long first[N], step[N], count[N];
  long long n[3];                                                       // of iterations along x, y, z
  unsigned threads[2];                                                  // of a block
  long long blocks[3];                                                  // in one or several launches
  long long from[2];                                                    // the first blocks of a launch along y and z
  Space(const xmp_range* ranges, int wanted, std::size_t bytes_each) {  // bytes_each: shared memory of a thread
    n[0] = n[1] = n[2] = 1;
    from[0] = from[1] = 0;
    for (int d = 0; d < N; ++d) {
      first[d] = ranges[d].first;
      step[d] = ranges[d].step;
      count[d] = ranges[d].end > ranges[d].first ? (ranges[d].end - ranges[d].first + step[d] - 1) / step[d] : 0;
      n[std::min(N - 1 - d, 2)] *= count[d];
    }
    unsigned all = 32;
    const unsigned most = static_cast<unsigned>(wanted > 0 ? std::min(wanted, 1024) : 128);
    while (all * 2 <= most && all * 2 * bytes_each <= kShared) all *= 2;
    threads[0] = 32;
    while (threads[0] < all && threads[0] < n[0]) threads[0] *= 2;
    threads[1] = all / threads[0];
    blocks[0] = (n[0] + threads[0] - 1) / threads[0];
    blocks[1] = (n[1] + threads[1] - 1) / threads[1];
    blocks[2] = n[2];
  }
  bool empty() const { return n[0] == 0 || n[1] == 0 || n[2] == 0; }
  std::size_t all_blocks() const { return static_cast<std::size_t>(blocks[0] * blocks[1] * blocks[2]); }
  static constexpr std::size_t kShared = 48 << 10;  // bytes that a block can have without asking for more
};
template <class Body>
constexpr std::size_t bytes_each() {
  return Body::kReduces ? sizeof(typename Body::Result) : 0;
}

/* The iteration of one thread, if it has one. */
template <int N, class Body, class Result>
TSK_DEVICE void run_thread(const Body& body, const Space<N>& s, const long long (&block)[3], unsigned x, unsigned y,
                           Result& result) {
  const long long i = block[0] * s.threads[0] + x;
  const long long j = block[1] * s.threads[1] + y;
  const long long k = block[2];
  if (i >= s.n[0] || j >= s.n[1]) return;
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

// Results of blocks are combined in steps. In a step each block of kLast threads makes one of kEach results. When no
// more than kFew are left, one block of kLast threads makes the nest's result of them.
constexpr unsigned kLast = 256;
constexpr std::size_t kEach = 1024;
constexpr std::size_t kFew = 4096;

#ifdef XACC_EMULATED
template <class Body>
void combine(std::vector<typename Body::Result>& all) {
  for (std::size_t half = all.size() / 2; half > 0; half /= 2)
    for (std::size_t t = 0; t < half; ++t) Body::add(all[t], all[t + half]);
}

// Of the blocks' results from `first` on.
template <class Body>
typename Body::Result combined(const std::vector<typename Body::Result>& partial, std::size_t first,
                               std::size_t count) {
  std::vector<typename Body::Result> all(kLast, Body::none());
  for (std::size_t n = 0; n < count; ++n) Body::add(all[n % kLast], partial[first + n]);
  combine<Body>(all);
  return all[0];
}

template <int N, class Body>
typename Body::Result run(const Body& body, const xmp_range* ranges, int, int threads) {
  using Result = typename Body::Result;
  const Space<N> s(ranges, threads, bytes_each<Body>());
  Result none{};
  if constexpr (Body::kReduces) none = Body::none();
  if (s.empty()) return none;
  std::vector<Result> partial;
  for (long long z = 0; z < s.blocks[2]; ++z)
    for (long long y = 0; y < s.blocks[1]; ++y)
      for (long long x = 0; x < s.blocks[0]; ++x) {
        std::vector<Result> results(s.threads[0] * s.threads[1], none);
        const long long block[3] = {x, y, z};
        for (unsigned t = 0; t < results.size(); ++t)
          run_thread(body, s, block, t % s.threads[0], t / s.threads[0], results[t]);
        if constexpr (Body::kReduces) {
          combine<Body>(results);
          partial.push_back(results[0]);
        }
      }
  if constexpr (Body::kReduces) {
    while (partial.size() > kFew) {
      std::vector<Result> fewer;
      for (std::size_t first = 0; first < partial.size(); first += kEach)
        fewer.push_back(combined<Body>(partial, first, std::min(kEach, partial.size() - first)));
      partial.swap(fewer);
    }
    return combined<Body>(partial, 0, partial.size());
  }
  return none;
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
  const long long block[3] = {blockIdx.x, s.from[0] + blockIdx.y, s.from[1] + blockIdx.z};
  if constexpr (Body::kReduces) {
    extern __shared__ double2 shared[];
    Result* const results = reinterpret_cast<Result*>(shared);
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    Result mine = Body::none();
    run_thread(body, s, block, threadIdx.x, threadIdx.y, mine);
    results[thread] = mine;
    combine<Body>(results, blockDim.x * blockDim.y, thread);
    if (thread == 0) partial[(block[2] * s.blocks[1] + block[1]) * s.blocks[0] + block[0]] = results[0];
  } else {
    Result none;
    run_thread(body, s, block, threadIdx.x, threadIdx.y, none);
  }
}

// Of `count` blocks' results, for thread 0 of kLast.
template <class Body>
__device__ const typename Body::Result& combined(const typename Body::Result* partial, std::size_t count) {
  using Result = typename Body::Result;
  __shared__ Result results[kLast];
  Result mine = Body::none();
  for (std::size_t n = threadIdx.x; n < count; n += kLast) Body::add(mine, partial[n]);
  results[threadIdx.x] = mine;
  combine<Body>(results, kLast, threadIdx.x);
  return results[0];
}
template <class Body>
__global__ void run_each(const typename Body::Result* partial, std::size_t count, typename Body::Result* fewer) {
  const std::size_t first = blockIdx.x * kEach;
  const typename Body::Result& all = combined<Body>(partial + first, min(kEach, count - first));
  if (threadIdx.x == 0) fewer[blockIdx.x] = all;
}
template <class Body>
__global__ void run_last(const typename Body::Result* partial, std::size_t count, typename Body::Result* result) {
  const typename Body::Result& all = combined<Body>(partial, count);
  if (threadIdx.x == 0) *result = all;
}

/* Addresses of variables on the GPU, as a kernel takes them. */
template <int N>
struct Places {
  void* at[N];
};
template <class Body>
__global__ void run_last_in_place(const typename Body::Result* partial, std::size_t count,
                                  Places<Body::kResults> results) {
  const typename Body::Result& all = combined<Body>(partial, count);
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

// Results of blocks, as work of a queue leaves them.
template <class Body>
struct Partial {
  typename Body::Result* at = nullptr;
  std::size_t count = 0;
};

// All iterations, as work of the queue; gives where the blocks' results will be, few enough for one more block.
template <int N, class Body>
Partial<Body> start(const Body& body, Space<N> s, int queue) {
  constexpr long long kMost = 65535;  // blocks of a launch along y and z
  Partial<Body> partial;
  if constexpr (Body::kReduces) {  // those of each step lie behind those that it combines
    partial.count = s.all_blocks();
    partial.at = room_for<Body>(partial.count + partial.count / (kEach - 1) + 8, queue);
  }
  const dim3 threads(s.threads[0], s.threads[1]);
  const std::size_t shared = bytes_each<Body>() * s.threads[0] * s.threads[1];
  // clang-format would part the brackets of a launch.
  // clang-format off
  for (s.from[1] = 0; s.from[1] < s.blocks[2]; s.from[1] += kMost)
    for (s.from[0] = 0; s.from[0] < s.blocks[1]; s.from[0] += kMost) {
      const dim3 blocks(static_cast<unsigned>(s.blocks[0]), static_cast<unsigned>(std::min(kMost, s.blocks[1] - s.from[0])),
                        static_cast<unsigned>(std::min(kMost, s.blocks[2] - s.from[1])));
      run_blocks<N><<<blocks, threads, shared, stream_of(queue)>>>(body, s, partial.at);
    }
  if constexpr (Body::kReduces)
    while (partial.count > kFew) {
      const Partial<Body> fewer{partial.at + partial.count, (partial.count + kEach - 1) / kEach};
      run_each<Body><<<static_cast<unsigned>(fewer.count), kLast, 0, stream_of(queue)>>>(partial.at, partial.count, fewer.at);
      partial = fewer;
    }
  // clang-format on
  return partial;
}

// Combines variables on the GPU with the nest's results, and returns at once.
template <int N, class Body>
void run_in_place(const Body& body, const xmp_range* ranges, void* const* results, int queue, int threads) {
  const Space<N> s(ranges, threads, bytes_each<Body>());
  if (s.empty()) return;
  Places<Body::kResults> places;
  std::copy(results, results + Body::kResults, places.at);
  const Partial<Body> partial = start(body, s, queue);
  // clang-format off
  run_last_in_place<Body><<<1, kLast, 0, stream_of(queue)>>>(partial.at, partial.count, places);
  // clang-format on
  check(cudaGetLastError(), "a kernel");
}

// Returns at once, unless there is a result.
template <int N, class Body>
typename Body::Result run(const Body& body, const xmp_range* ranges, int queue, int threads) {
  using Result = typename Body::Result;
  const Space<N> s(ranges, threads, bytes_each<Body>());
  Result result{};
  if constexpr (Body::kReduces) result = Body::none();
  if (s.empty()) return result;
  const Partial<Body> partial = start(body, s, queue);
  if constexpr (Body::kReduces) {
    Result* const whole = partial.at + partial.count;
    // clang-format off
    run_last<Body><<<1, kLast, 0, stream_of(queue)>>>(partial.at, partial.count, whole);
    // clang-format on
    check(cudaMemcpyAsync(&result, whole, sizeof(Result), cudaMemcpyDeviceToHost, stream_of(queue)), "a reduction");
    check(cudaStreamSynchronize(stream_of(queue)), "a reduction");
  }
  check(cudaGetLastError(), "a kernel");
  return result;
}
#endif

}  // namespace tsk

#endif
