// Reductions over strided patterns: one kernel per number type, with a special loop for blocks of one number.
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "layout/nest_loop.hpp"
#include "tasuki/error.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

template <class T>
[[gnu::always_inline]] inline void add_one(const std::byte* __restrict src, std::byte* __restrict dst) {
  T a;
  T b;
  std::memcpy(&a, src, sizeof(T));  // any alignment
  std::memcpy(&b, dst, sizeof(T));
  b = static_cast<T>(a + b);
  std::memcpy(dst, &b, sizeof(T));
}

template <class T>
void add_numbers(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  for_each_block(copy, src, dst, [](const std::byte* from, std::byte* to) { add_one<T>(from, to); });
}

template <class T>
void add_rows(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  constexpr std::int64_t kVector = 16;
  typedef T Vector __attribute__((vector_size(kVector)));
  const std::int64_t bytes = copy.block;
  for_each_block<false>(copy, src, dst, [bytes](const std::byte* __restrict from, std::byte* __restrict to) {
    std::int64_t done = 0;
    for (; done + 4 * kVector <= bytes; done += 4 * kVector)
      for (std::int64_t i = 0; i < 4; ++i) add_one<Vector>(from + done + i * kVector, to + done + i * kVector);
    for (; done < bytes; done += sizeof(T)) add_one<T>(from + done, to + done);
  });
}

template <class T>
CopyFunction select(const StridedCopy& copy) {
  return copy.block == sizeof(T) ? add_numbers<T> : add_rows<T>;
}

}  // namespace

CopyFunction select_add(const StridedCopy& copy, DType type) {
  const std::int64_t element = size_of(type);
  if (element == 0 || copy.block % element != 0)
    throw Error(
        fmt::format("select_add: a block of {} B is no whole number of elements of type {}; add layouts built "
                    "from the element type",
                    copy.block, to_string(type)));
  switch (type) {  // signed and unsigned integers add alike, and unsigned ones wrap instead of overflowing
    case DType::i8:
    case DType::u8:
      return select<std::uint8_t>(copy);
    case DType::i16:
    case DType::u16:
      return select<std::uint16_t>(copy);
    case DType::i32:
    case DType::u32:
      return select<std::uint32_t>(copy);
    case DType::i64:
    case DType::u64:
      return select<std::uint64_t>(copy);
    case DType::f32:
      return select<float>(copy);
    case DType::f64:
      return select<double>(copy);
    case DType::none:
      break;
  }
  throw Error("select_add: no number type given; name the type of the elements");
}

}  // namespace tasuki
