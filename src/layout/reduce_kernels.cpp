// Reductions over strided patterns: one kernel per element type and operator, with a special loop for blocks of one
// element. The loops over longer blocks are compiled twice on x86. SSE2, which every processor has, lacks blends and
// comparisons of 64-bit integers. With AVX2 a maximum of doubles is taken 6 times as fast.
#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "layout/nest_loop.hpp"
#include "tasuki/error.hpp"
#include "tasuki/kernel/impl/reduce_ops.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

template <class Op, class T>
[[gnu::always_inline]] inline void reduce_one(const std::byte* __restrict src, std::byte* __restrict dst) {
  T a;
  T b;
  std::memcpy(&a, dst, sizeof(T));  // any alignment
  std::memcpy(&b, src, sizeof(T));
  a = Op{}(a, b);
  std::memcpy(dst, &a, sizeof(T));
}

// A copy with lists is a nest for each step.
template <bool Unroll, class BlockBody>
[[gnu::always_inline]] inline void for_each_listed(const StridedCopy& copy, const std::byte* src, std::byte* dst,
                                                   const BlockBody& block) {
  const bool listed = copy.listed();
  const std::int64_t nests = listed ? copy.dims[0].count : 1;
  for (std::int64_t i = 0; i < nests; ++i)
    for_each_block<Unroll>(listed ? nest_of_step(copy, i) : nest_of(copy), src, dst, block);
}

template <class Op, class T>
void reduce_numbers(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  for_each_listed<true>(copy, src, dst, [](const std::byte* from, std::byte* to) { reduce_one<Op, T>(from, to); });
}

template <class Op, class T>
[[gnu::always_inline]] inline void reduce_each(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  const std::int64_t bytes = copy.block;
  const auto reduce_row = [bytes](const std::byte* __restrict from, std::byte* __restrict to)
      __attribute__((always_inline)) {
    for (std::int64_t done = 0; done < bytes; done += sizeof(T)) reduce_one<Op, T>(from + done, to + done);
  };
  for_each_listed<false>(copy, src, dst, reduce_row);
}

template <class Op, class T>
void reduce_rows(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  reduce_each<Op, T>(copy, src, dst);
}

#if defined(__x86_64__)
template <class Op, class T>
[[gnu::target("avx2")]] void reduce_rows_avx2(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  reduce_each<Op, T>(copy, src, dst);
}
#endif

template <class Op, class T>
CopyFunction function_for_rows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return reduce_rows_avx2<Op, T>;
#endif
  return reduce_rows<Op, T>;
}

// Signed and unsigned integers differ only in their order.
template <class Op, class T>
struct Kernel {
  using Element = T;
};
template <class Op, std::signed_integral T>
requires(!std::is_same_v<Op, element::Extreme<true>> &&
         !std::is_same_v<Op, element::Extreme<false>>) struct Kernel<Op, T> {
  using Element = std::make_unsigned_t<T>;
};

template <class Op, class T>
CopyFunction select(const StridedCopy& copy) {
  using Element = typename Kernel<Op, T>::Element;
  if (copy.block == sizeof(Element)) return reduce_numbers<Op, Element>;
  return function_for_rows<Op, Element>();
}

}  // namespace

CopyFunction select_reduce(const StridedCopy& copy, DType type, ReduceOp op) {
  if (type == DType::none) throw Error("select_reduce: no number type given; name the type of the elements");
  const std::int64_t element = size_of(type);
  if (op == ReduceOp::own)
    throw Error("select_reduce: the operator is the user's own, a function that whoever runs the plan must know");
  if (op == ReduceOp::negate ? !has_sign(type) : !defined(op, type)) {
    throw Error(
        fmt::format("select_reduce: the operator {} is not defined for elements of type {}; see `defined` in "
                    "tasuki/dtype.hpp for what goes together",
                    to_string(op), to_string(type)));
  }
  if (copy.block % element != 0) {
    throw Error(
        fmt::format("select_reduce: a block of {} B is no whole number of elements of type {}; reduce layouts "
                    "built from the element type",
                    copy.block, to_string(type)));
  }
  CopyFunction function = nullptr;
  element::with_element(type, [&](auto number) {
    element::with_operator(op, [&](auto combine) {
      using Op = decltype(combine);
      using T = decltype(number);
      if constexpr (element::kApplies<Op, T>) function = select<Op, T>(copy);
    });
  });
  return function;
}

}  // namespace tasuki
