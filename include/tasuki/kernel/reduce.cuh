// How a warp reduces a tile of a strided copy (program.cuh) into its destination: from packed memory, or from stamped
// lines as they arrive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tasuki/kernel/places.cuh"
#include "tasuki/kernel/program.cuh"
#include "tasuki/kernel/reduce_ops.hpp"
#include "tasuki/kernel/warp.cuh"
#if defined(TASUKI_LANES_ARE_THREADS)
#include "tasuki/kernel/lines.cuh"
#endif

namespace tasuki::device::lowered {

// In packed memory, elements may follow smaller ones, so they may be unaligned. A GPU moves such elements byte by byte.
template <class Element>
TASUKI_DEVICE Element load_anywhere(const std::byte* from) {
#ifdef __CUDA_ARCH__
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(Element) == 0) return *reinterpret_cast<const Element*>(from);
#endif
  Element value;
  memcpy(&value, from, sizeof value);
  return value;
}

template <class Element>
TASUKI_DEVICE void store_anywhere(std::byte* to, const Element& value) {
#ifdef __CUDA_ARCH__
  if (reinterpret_cast<std::uintptr_t>(to) % alignof(Element) == 0) {
    *reinterpret_cast<Element*>(to) = value;
    return;
  }
#endif
  memcpy(to, &value, sizeof value);
}

#if defined(TASUKI_LANES_ARE_THREADS)
// Element n of the lines that begin at `from`. False if it has not arrived.
template <class Element, class Patient>
TASUKI_DEVICE bool load_from_lines(const std::byte* from, std::uint32_t n, std::uint32_t stamp, Element& value,
                                   const Patient& patient) {
  constexpr std::uint32_t kWords = sizeof(Element) / 4;
  std::uint32_t words[kWords];
  for (std::uint32_t i = 0; i < kWords; ++i) {
    if (!load_word(from, n * kWords + i, stamp, words[i], patient)) return false;
  }
  memcpy(&value, words, sizeof value);
  return true;
}
#endif

// All loads are issued before the first store. False if stamped lines have not arrived.
template <class Element, class Patient>
TASUKI_DEVICE bool reduce_tile(ReduceOp op, const GpuTile& t, bool stamped, [[maybe_unused]] std::uint32_t stamp,
                               [[maybe_unused]] const Patient& patient) {
  const TilePlaces<std::byte, kTileRows, kSource | kTarget> at(t);
  const int count = at.count;
  Element here[kTileRows] = {};
  Element there[kTileRows] = {};
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (j >= count) break;
    if (!stamped) there[j] = load_anywhere<Element>(at.src(j));
    here[j] = load_anywhere<Element>(at.dst(j));
  }
#if defined(TASUKI_LANES_ARE_THREADS)
  if constexpr (sizeof(Element) % 4 == 0) {
    for (int j = 0; stamped && j < count; ++j) {
      if (!load_from_lines(t.src + t.copy.src_offset, t.first + 32 * j, stamp, there[j], patient)) return false;
    }
  }
#endif
  element::with_operator(op, [&](auto combine) {
    if constexpr (element::kApplies<decltype(combine), Element>) {
      TASUKI_UNROLL
      for (int j = 0; j < kTileRows; ++j) here[j] = combine(here[j], there[j]);
    }
  });
  TASUKI_UNROLL
  for (int j = 0; j < kTileRows; ++j) {
    if (j < count) store_anywhere(at.dst(j), here[j]);
  }
  return true;
}

template <class Patient>
TASUKI_DEVICE bool reduce_tile_of(DType type, ReduceOp op, const GpuTile& t, bool stamped, std::uint32_t stamp,
                                  const Patient& patient) {
  bool came = true;
  element::with_element(type,
                        [&](auto number) { came = reduce_tile<decltype(number)>(op, t, stamped, stamp, patient); });
  return came;
}

}  // namespace tasuki::device::lowered
