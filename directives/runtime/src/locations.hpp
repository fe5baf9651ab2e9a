// Whose value is the greatest or the least. It is compiled for hosts and for GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tasuki/dtype.hpp"

#if defined(__CUDACC__)
#define TASUKI_XMP_EVERYWHERE __host__ __device__
#else
#define TASUKI_XMP_EVERYWHERE
#endif

namespace tasuki::xmp {

/// `nodes` blocks of `stride` bytes, each of which begins with `count` values of `type`, an integer or floating-point
/// type of C. Nothing need be aligned.
struct Gathered {
  const std::byte* all = nullptr;
  int nodes = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;
  DType type = DType::none;
  bool greatest = true;
  bool last = false;  ///< of equal ones the last, not the first
};

/// What is taken from the best block for each value: elements that begin `offset` bytes after the block's beginning.
struct Chosen {
  void* to = nullptr;
  std::int64_t offset = 0;
  std::int64_t element_bytes = 0;
};

/// The node whose value of type T at `element` is best. A NaN is the best.
template <class T>
TASUKI_XMP_EVERYWHERE int best_of(const Gathered& in, std::int64_t element) {
  const auto value = [&](int node) {
    T one;
    std::memcpy(&one, in.all + node * in.stride + element * static_cast<std::int64_t>(sizeof(T)), sizeof one);
    return one;
  };
  const auto better = [&](T a, T b) {  // not less, and nothing is better than a NaN
    if (a != a || b != b) return a != a && b == b;
    return in.greatest ? a > b : a < b;
  };
  int best = 0;
  for (int node = 1; node < in.nodes; ++node) {
    const T a = value(node);
    const T b = value(best);
    if (better(a, b) || (in.last && !better(b, a))) best = node;
  }
  return best;
}

/// Takes element `element` from the node whose value is best.
template <class T>
TASUKI_XMP_EVERYWHERE void take_best_at(const Gathered& in, const Chosen& what, std::int64_t element) {
  const std::int64_t place = element * what.element_bytes;
  const std::byte* const from = in.all + best_of<T>(in, element) * in.stride + what.offset + place;
  std::memcpy(static_cast<std::byte*>(what.to) + place, from, static_cast<std::size_t>(what.element_bytes));
}

/// Calls `call(T{})` for the C type that `type` names. False: it is none of those that have an order.
template <class Call>
bool with_ordered(DType type, Call&& call) {
  switch (type) {
    case DType::i8:
      return call(std::int8_t{}), true;
    case DType::i16:
      return call(std::int16_t{}), true;
    case DType::i32:
      return call(std::int32_t{}), true;
    case DType::i64:
      return call(std::int64_t{}), true;
    case DType::u8:
      return call(std::uint8_t{}), true;
    case DType::u16:
      return call(std::uint16_t{}), true;
    case DType::u32:
      return call(std::uint32_t{}), true;
    case DType::u64:
      return call(std::uint64_t{}), true;
    case DType::f32:
      return call(float{}), true;
    case DType::f64:
      return call(double{}), true;
    default:
      return false;
  }
}

/// Takes all elements, in memory of the host. Throws `Error` for types without an order.
void take_best(const Gathered& in, const Chosen& what);

}  // namespace tasuki::xmp
