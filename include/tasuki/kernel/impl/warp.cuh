// Warps as those see them that run a lowered plan: 32 lanes, each with a part of a tile. On a processor one thread is a
// whole warp and takes the lanes one after the other. Part of tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/impl/words.cuh"

#if defined(__CUDACC__)
#define TASUKI_UNROLL _Pragma("unroll")
#define TASUKI_NO_UNROLL _Pragma("unroll 1")
#define TASUKI_NOINLINE inline __device__ __noinline__
#define TASUKI_WITHIN __device__ __forceinline__
/// A warp's lanes are threads, which can unpack LL lines.
#define TASUKI_LANES_ARE_THREADS 1
#else
#define TASUKI_UNROLL
#define TASUKI_NO_UNROLL
#define TASUKI_NOINLINE inline
#define TASUKI_WITHIN inline
#endif

namespace tasuki::device::lowered {

constexpr std::uint32_t kLanes = 32;

#if defined(__CUDACC__)

using Unit8 = uint2;
using Unit16 = uint4;

TASUKI_DEVICE std::uint32_t lane() {
  std::uint32_t number;
  asm("mov.u32 %0, %%laneid;" : "=r"(number));
  return number;
}
/// Calls `f` for each lane; whether it says yes for all; for how many it does. By the whole warp.
template <class F>
TASUKI_DEVICE void each_lane(const F& f) {
  f(lane());
}
template <class F>
TASUKI_DEVICE bool all_lanes(const F& f) {
  return __all_sync(~0u, f(lane())) != 0;
}
template <class F>
TASUKI_DEVICE std::uint32_t count_lanes(const F& f) {
  return __popc(__ballot_sync(~0u, f(lane())));
}
TASUKI_DEVICE std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return __umulhi(a, b);
}
template <class Unit>
TASUKI_DEVICE Unit load_unit(const std::byte* from) {
  return *reinterpret_cast<const Unit*>(from);
}
template <class Unit>
TASUKI_DEVICE void store_unit(std::byte* to, const Unit& value) {
  *reinterpret_cast<Unit*>(to) = value;
}

#else

struct Unit8 {
  std::uint32_t x, y;
};
struct Unit16 {
  std::uint32_t x, y, z, w;
};

template <class F>
inline void each_lane(const F& f) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) f(lane);
}
template <class F>
inline bool all_lanes(const F& f) {
  bool all = true;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) all = f(lane) && all;
  return all;
}
template <class F>
inline std::uint32_t count_lanes(const F& f) {
  std::uint32_t count = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) count += f(lane) ? 1 : 0;
  return count;
}
inline std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
// The user's elements have other types.
template <class Unit>
inline Unit load_unit(const std::byte* from) {
  Unit value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class Unit>
inline void store_unit(std::byte* to, const Unit& value) {
  std::memcpy(to, &value, sizeof value);
}

#endif

TASUKI_DEVICE std::uint32_t least(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}

}  // namespace tasuki::device::lowered
