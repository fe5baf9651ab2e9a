// What a reduction does to one element. Processors and GPUs use this one definition, so both give the same bits.
//
// `with_element(type, f)` calls f with the element of a type, `with_operator(op, f)` with the function object of an
// operator. `kApplies<Op, Element>` says which go together, as `defined` does. An operator's result is the same
// everywhere, except for the bits of NaNs, which differ on GPUs. Nothing here branches, so that compilers make vector
// instructions of loops over elements.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <bit>
#include <concepts>
#include <type_traits>
#endif

#include "tasuki/dtype.hpp"
#include "tasuki/kernel/impl/standard.hpp"

#ifdef __CUDACC__
#define TASUKI_BOTH __host__ __device__ __forceinline__
#else
#define TASUKI_BOTH [[gnu::always_inline]] inline  // into functions for other processors, too
#endif

namespace tasuki::element {

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};
template <class Real>
struct alignas(2 * sizeof(Real)) Complex {
  Real re, im;
};
template <class Value, class Index>
struct alignas(2 * sizeof(Value)) Pair {
  Value value;
  Index index;
};
template <class Value, class Index>
requires(sizeof(Value) > sizeof(Index)) struct alignas(2 * sizeof(Value)) Pair<Value, Index> {
  Value value;
  Index index;
  Index padding;  // a member, so that the destination keeps its own
};

template <class T>
inline constexpr bool kIsComplex = false;
template <class Real>
inline constexpr bool kIsComplex<Complex<Real>> = true;
template <class T>
inline constexpr bool kIsPair = false;
template <class Value, class Index>
inline constexpr bool kIsPair<Pair<Value, Index>> = true;
template <class T>
inline constexpr bool kIsHalf = std::same_as<T, F16> || std::same_as<T, BF16>;
template <class T>
inline constexpr bool kIsReal = std::floating_point<T> || kIsHalf<T>;

// --- numbers of 16 bits ----------------------------------------------------------------------------------------------

TASUKI_BOTH float to_f32(BF16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

TASUKI_BOTH float to_f32(F16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t rest = x.bits & 0x7fffu;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);  // subnormal
  const std::uint32_t normal = (rest << 13) + 0x38000000u;
  const std::uint32_t others = rest << 13 | 0x7f800000u;  // infinity or NaN
  return std::bit_cast<float>(sign | (rest < 0x400u ? small : rest < 0x7c00u ? normal : others));
}

/// Rounds to nearest even. Every NaN becomes 0x7fff.
TASUKI_BOTH void from_f32(float value, BF16& x) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool no_number = (bits & 0x7fffffffu) > 0x7f800000u;
  x.bits = static_cast<std::uint16_t>(no_number ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

TASUKI_BOTH void from_f32(float value, F16& x) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t rest = bits & 0x7fffffffu;
  // Adding 0.5 to a number below 2^-14 leaves units of 2^-24 in the last bits, rounded.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  const std::uint32_t finite = rest < 0x38800000u ? small : normal;
  const std::uint32_t number = sign | (rest < 0x47800000u ? finite : 0x7c00u);  // 65536 and more: infinity
  x.bits = static_cast<std::uint16_t>(rest > 0x7f800000u ? 0x7fffu : number);
}

// --- operators -------------------------------------------------------------------------------------------------------

/// Products must not be contracted with the following sum: processors and GPUs contract differently.
template <class Real>
TASUKI_BOTH Real product_of(Real a, Real b) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Real) == 4) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#else
  return a * b;
#endif
}

/// An unsigned integer at least as wide as T and as int. Its arithmetic wraps; a narrower one would be promoted to int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;

struct Sum {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else if constexpr (kIsHalf<T>) {
      T c{};
      from_f32(to_f32(a) + to_f32(b), c);
      return c;
    } else if constexpr (kIsComplex<T>) {
      return {a.re + b.re, a.im + b.im};
    } else {
      return a + b;
    }
  }
};

struct Product {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else if constexpr (kIsHalf<T>) {
      T c{};
      from_f32(to_f32(a) * to_f32(b), c);
      return c;
    } else if constexpr (kIsComplex<T>) {
      return {product_of(a.re, b.re) - product_of(a.im, b.im), product_of(a.re, b.im) + product_of(a.im, b.re)};
    } else {
      return a * b;
    }
  }
};

/// The minimum if `kLess`, else the maximum. A NaN wins, and of two the first. Of zeros of different sign the negative
/// one is less.
template <bool kLess>
struct Extreme {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return (b < a) == kLess && a != b ? b : a;
    } else if constexpr (kIsHalf<T>) {
      const std::int16_t x = order_of(a);
      const std::int16_t y = order_of(b);
      const auto keeps = mask<std::uint16_t>((kLess ? x <= y : x >= y) && !is_nan(b)) | mask<std::uint16_t>(is_nan(a));
      return {static_cast<std::uint16_t>((a.bits & keeps) | (b.bits & ~keeps))};
    } else {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      const auto x = std::bit_cast<Bits>(a);
      const auto y = std::bit_cast<Bits>(b);
      const auto keeps = mask<Bits>(kLess ? a < b : a > b) | mask<Bits>(a != a);  // NOLINT(misc-redundant-expression)
      const auto equal = mask<Bits>(a == b);  // then they differ in the sign at most
      const auto either = kLess ? x | y : x & y;
      return std::bit_cast<T>((equal & either) | (~equal & ((x & keeps) | (y & ~keeps))));
    }
  }

 private:
  template <class Bits>
  TASUKI_BOTH static Bits mask(bool all) {
    return static_cast<Bits>(-static_cast<Bits>(all));
  }
  /// An integer that is less for a number that is less.
  template <class Half>
  TASUKI_BOTH static std::int16_t order_of(Half x) {
    const auto number = static_cast<std::int16_t>(x.bits);
    return static_cast<std::int16_t>(number < 0 ? number ^ 0x7fff : number);
  }
  TASUKI_BOTH static bool is_nan(F16 x) { return (x.bits & 0x7fff) > 0x7c00; }
  TASUKI_BOTH static bool is_nan(BF16 x) { return (x.bits & 0x7fff) > 0x7f80; }
};

/// Operators on bits, or on truth values.
template <class Combine, bool kTruth>
struct Logical {
  template <std::integral T>
  TASUKI_BOTH T operator()(T a, T b) const {
    if constexpr (kTruth) return static_cast<T>(Combine{}(a != 0 ? 1u : 0u, b != 0 ? 1u : 0u));
    return static_cast<T>(Combine{}(static_cast<Wrapping<T>>(a), static_cast<Wrapping<T>>(b)));
  }
};
struct And {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    return a ^ b;
  }
};

template <bool kLess>
struct Located {
  template <class T>
  TASUKI_BOTH T operator()(T a, T b) const {
    const bool none = a.value != a.value;
    const bool better = !none && ((kLess ? b.value < a.value : b.value > a.value) || b.value != b.value);
    const bool equal = a.value == b.value || (none && b.value != b.value);
    if (better || (equal && b.index < a.index)) {
      a.value = b.value;
      a.index = b.index;
    }
    return a;
  }
};

/// The second element with its sign changed, whatever the first one is.
struct Negate {
  template <class T>
  TASUKI_BOTH T operator()(T, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(b));
    } else if constexpr (kIsHalf<T>) {
      return {static_cast<std::uint16_t>(b.bits ^ 0x8000u)};
    } else if constexpr (kIsComplex<T>) {
      return {-b.re, -b.im};
    } else {
      return -b;
    }
  }
};

/// Whether the operator is defined for the element, as `defined` and, of `Negate`, `has_sign` say.
template <class Op, class T>
inline constexpr bool kApplies = std::integral<T>;
template <class T>
inline constexpr bool kApplies<Sum, T> = !kIsPair<T>;
template <class T>
inline constexpr bool kApplies<Product, T> = !kIsPair<T>;
template <bool kLess, class T>
inline constexpr bool kApplies<Extreme<kLess>, T> = std::integral<T> || kIsReal<T>;
template <bool kLess, class T>
inline constexpr bool kApplies<Located<kLess>, T> = kIsPair<T>;

template <class T>
inline constexpr bool kApplies<Negate, T> = !kIsPair<T>;
template <std::integral T>
inline constexpr bool kApplies<Negate, T> = static_cast<T>(-1) < static_cast<T>(0);

template <class F>
TASUKI_BOTH void with_operator(ReduceOp op, const F& f) {
  switch (op) {
    case ReduceOp::sum:
      return f(Sum{});
    case ReduceOp::product:
      return f(Product{});
    case ReduceOp::min:
      return f(Extreme<true>{});
    case ReduceOp::max:
      return f(Extreme<false>{});
    case ReduceOp::band:
      return f(Logical<And, false>{});
    case ReduceOp::bor:
      return f(Logical<Or, false>{});
    case ReduceOp::bxor:
      return f(Logical<Xor, false>{});
    case ReduceOp::land:
      return f(Logical<And, true>{});
    case ReduceOp::lor:
      return f(Logical<Or, true>{});
    case ReduceOp::lxor:
      return f(Logical<Xor, true>{});
    case ReduceOp::minloc:
      return f(Located<true>{});
    case ReduceOp::maxloc:
      return f(Located<false>{});
    case ReduceOp::own:  // a function of the user's, which nothing here knows
      return;
    case ReduceOp::negate:
      return f(Negate{});
  }
}

/// Not for `none`.
template <class F>
TASUKI_BOTH void with_element(DType type, const F& f) {
  switch (type) {
    case DType::none:
      return;
    case DType::i8:
      return f(std::int8_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::u16:
      return f(std::uint16_t{});
    case DType::u32:
      return f(std::uint32_t{});
    case DType::u64:
      return f(std::uint64_t{});
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(F16{});
    case DType::bf16:
      return f(BF16{});
    case DType::c64:
      return f(Complex<float>{});
    case DType::c128:
      return f(Complex<double>{});
    case DType::f32_i32:
      return f(Pair<float, std::int32_t>{});
    case DType::f64_i32:
      return f(Pair<double, std::int32_t>{});
    case DType::i32_i32:
      return f(Pair<std::int32_t, std::int32_t>{});
    case DType::i64_i32:
      return f(Pair<std::int64_t, std::int32_t>{});
    case DType::f64_i64:
      return f(Pair<double, std::int64_t>{});
    case DType::i64_i64:
      return f(Pair<std::int64_t, std::int64_t>{});
  }
}

}  // namespace tasuki::element
