// Warps on a processor: what the GPU's code (tasuki/kernel/impl/lines.cuh) needs to be compiled for one, and 32 threads
// that run it. A function of a warp that not all of its threads call never returns.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
inline uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) {
  return {x, y, z, w};
}

inline std::uint32_t __funnelshift_r(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> bits % 32);
}

namespace warp {

/// What the threads of one warp share.
struct Warp {
  std::barrier<> barrier{32};
  std::array<std::uint32_t, 32> said{};
};

inline thread_local Warp* mine = nullptr;

struct Index {
  std::uint32_t x = 0;
};

/// What each thread of the warp says, in a thread's turn of it.
inline std::array<std::uint32_t, 32> exchange(std::uint32_t lane, std::uint32_t value) {
  mine->said[lane] = value;
  mine->barrier.arrive_and_wait();
  const auto all = mine->said;
  mine->barrier.arrive_and_wait();
  return all;
}

}  // namespace warp

inline thread_local warp::Index threadIdx;

inline std::uint32_t __shfl_sync(std::uint32_t, std::uint32_t value, int lane) {
  return warp::exchange(threadIdx.x, value)[static_cast<std::size_t>(lane) % 32];
}

inline std::uint32_t __shfl_xor_sync(std::uint32_t, std::uint32_t value, int mask) {
  return warp::exchange(threadIdx.x, value)[threadIdx.x ^ static_cast<std::uint32_t>(mask)];
}

inline int __any_sync(std::uint32_t, bool value) {
  const auto all = warp::exchange(threadIdx.x, value ? 1 : 0);
  return std::any_of(all.begin(), all.end(), [](std::uint32_t v) { return v != 0; }) ? 1 : 0;
}

namespace warp {

/// Calls f once in each thread of a warp.
template <class F>
void run(const F& f) {
  Warp warp;
  std::vector<std::jthread> threads;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    threads.emplace_back([&, lane] {
      mine = &warp;
      threadIdx.x = lane;
      f();
    });
  }
}

}  // namespace warp

#define TASUKI_LANES_ARE_THREADS 1

namespace tasuki::device::lowered {
inline std::uint32_t lane() {
  return threadIdx.x;
}
}  // namespace tasuki::device::lowered

#include "tasuki/kernel/impl/copy.cuh"
#include "tasuki/kernel/impl/lines.cuh"
#include "tasuki/kernel/impl/reduce.cuh"
#include "tasuki/kernel/impl/turn.cuh"

namespace tasuki::device::lowered {

// A GPU stores and loads a piece at once; a processor, with a lock.
inline std::mutex piece_lock;

inline void store_piece(std::byte* to, const uint4& piece) {
  const std::lock_guard lock(piece_lock);
  std::memcpy(to, &piece, sizeof piece);
}

inline uint4 load_piece(const std::byte* from) {
  const std::lock_guard lock(piece_lock);
  uint4 piece;
  std::memcpy(&piece, from, sizeof piece);
  return piece;
}

}  // namespace tasuki::device::lowered
