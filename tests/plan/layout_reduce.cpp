// select_reduce: every operator on every type it is defined for, against plain loops, over any nest and alignment;
// and what is not defined is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "layout_model.hpp"
#include "tasuki/error.hpp"

using tasuki::DType;
using tasuki::Error;
using tasuki::ReduceOp;
using tasuki::StridedCopy;
using namespace layout_model;

namespace {

constexpr DType kTypes[] = {DType::i8,      DType::i16,     DType::i32,     DType::i64,     DType::u8,
                            DType::u16,     DType::u32,     DType::u64,     DType::f32,     DType::f64,
                            DType::f16,     DType::bf16,    DType::c64,     DType::c128,    DType::f32_i32,
                            DType::f64_i32, DType::i32_i32, DType::i64_i32, DType::f64_i64, DType::i64_i64};
constexpr ReduceOp kOps[] = {ReduceOp::sum,  ReduceOp::product, ReduceOp::min,    ReduceOp::max,
                             ReduceOp::band, ReduceOp::bor,     ReduceOp::bxor,   ReduceOp::land,
                             ReduceOp::lor,  ReduceOp::lxor,    ReduceOp::minloc, ReduceOp::maxloc};

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// --- what an operator means, element by element, written down a second time
// -------------------------------------------

// Numbers of 16 bits by way of double: the exponent and mantissa taken apart, put together by a search of all of them.
double widened(std::uint16_t bits, DType type) {
  const int mantissa_bits = type == DType::f16 ? 10 : 7;
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// To nearest, ties to even: bisected over the numbers that are not negative, which are in the order of their bits.
std::uint16_t narrowed(double value, DType type) {
  if (std::isnan(value)) return 0x7fff;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  std::uint16_t low = 0, high = type == DType::f16 ? 0x7c00 : 0x7f80;
  if (size >= widened(static_cast<std::uint16_t>(high - 1), type)) {
    const double last = widened(static_cast<std::uint16_t>(high - 1), type);
    const double step = last - widened(static_cast<std::uint16_t>(high - 2), type);
    return static_cast<std::uint16_t>(sign | (size >= last + step / 2 ? high : high - 1));
  }
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (widened(middle, type) <= size ? low : high) = middle;
  }
  const double below = size - widened(low, type), above = widened(high, type) - size;
  return static_cast<std::uint16_t>(sign | (below < above || (below == above && low % 2 == 0) ? low : high));
}

template <class T>
T integer(ReduceOp op, T a, T b) {
  using U = std::uint64_t;
  switch (op) {
    case ReduceOp::sum:
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    case ReduceOp::product:
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::band:
      return static_cast<T>(a & b);
    case ReduceOp::bor:
      return static_cast<T>(a | b);
    case ReduceOp::bxor:
      return static_cast<T>(a ^ b);
    case ReduceOp::land:
      return a && b ? 1 : 0;
    case ReduceOp::lor:
      return a || b ? 1 : 0;
    default:
      return !a != !b ? 1 : 0;
  }
}

// Which of two numbers min or max takes: the first if true.
bool keeps_first(bool least, double a, double b) {
  if (std::isnan(a)) return true;
  if (std::isnan(b)) return false;
  if (a == b) return std::signbit(a) == std::signbit(b) || std::signbit(a) == least;
  return (a < b) == least;
}

template <class T>
T real(ReduceOp op, T a, T b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::product) return a * b;
  return keeps_first(op == ReduceOp::min, a, b) ? a : b;
}

template <class T>
void complex(ReduceOp op, std::byte* to, const std::byte* from) {
  const T a = load<T>(to), b = load<T>(to + sizeof(T)), c = load<T>(from), d = load<T>(from + sizeof(T));
  const T ac = a * c, bd = b * d, ad = a * d, bc = b * c;
  store<T>(to, op == ReduceOp::sum ? a + c : ac - bd);
  store<T>(to + sizeof(T), op == ReduceOp::sum ? b + d : ad + bc);
}

template <class V, class I>
void located(ReduceOp op, std::byte* to, const std::byte* from) {
  const V a = load<V>(to), b = load<V>(from);
  const I i = load<I>(to + sizeof(V)), j = load<I>(from + sizeof(V));
  bool take = op == ReduceOp::minloc ? b < a : b > a;
  if constexpr (std::is_floating_point_v<V>) {
    if (std::isnan(a)) take = std::isnan(b) && j < i;
    if (!std::isnan(a) && std::isnan(b)) take = true;
  }
  if (a == b) take = j < i;
  if (!take) return;
  store(to, b);
  store(to + sizeof(V), j);
}

void combine(ReduceOp op, DType type, std::byte* to, const std::byte* from) {
  const auto as = [&]<class T>(T (*f)(ReduceOp, T, T)) { store(to, f(op, load<T>(to), load<T>(from))); };
  switch (type) {
    case DType::i8:
      return as(integer<std::int8_t>);
    case DType::i16:
      return as(integer<std::int16_t>);
    case DType::i32:
      return as(integer<std::int32_t>);
    case DType::i64:
      return as(integer<std::int64_t>);
    case DType::u8:
      return as(integer<std::uint8_t>);
    case DType::u16:
      return as(integer<std::uint16_t>);
    case DType::u32:
      return as(integer<std::uint32_t>);
    case DType::u64:
      return as(integer<std::uint64_t>);
    case DType::f32:
      return as(real<float>);
    case DType::f64:
      return as(real<double>);
    case DType::f16:
    case DType::bf16: {
      const auto a = load<std::uint16_t>(to), b = load<std::uint16_t>(from);
      const double x = widened(a, type), y = widened(b, type);
      if (op == ReduceOp::min || op == ReduceOp::max) return store(to, keeps_first(op == ReduceOp::min, x, y) ? a : b);
      return store(to, narrowed(op == ReduceOp::sum ? x + y : x * y, type));
    }
    case DType::c64:
      return complex<float>(op, to, from);
    case DType::c128:
      return complex<double>(op, to, from);
    case DType::f32_i32:
      return located<float, std::int32_t>(op, to, from);
    case DType::f64_i32:
      return located<double, std::int32_t>(op, to, from);
    case DType::i32_i32:
      return located<std::int32_t, std::int32_t>(op, to, from);
    case DType::i64_i32:
      return located<std::int64_t, std::int32_t>(op, to, from);
    case DType::f64_i64:
      return located<double, std::int64_t>(op, to, from);
    case DType::i64_i64:
      return located<std::int64_t, std::int64_t>(op, to, from);
    case DType::none:
      break;
  }
  FAIL("no type");
}

// --- elements worth trying
// ---------------------------------------------------------------------------------------------

void random_real(Random& random, std::byte* to, bool wide) {
  static constexpr double kOdd[] = {0.0, -0.0, 1.5, -2.25, 1e30, -1e-30, 3.0};
  const double value =
      random.number(0, 2) == 0 ? kOdd[random.number(0, 6)] : static_cast<double>(random.number(-1000, 1000)) / 7;
  wide ? store(to, value) : store(to, static_cast<float>(value));
}

void random_element(Random& random, DType type, std::byte* to) {
  const auto size = static_cast<std::size_t>(size_of(type));
  for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<std::byte>(random.number(0, 255));
  const auto few = [&]<class I>(I) {
    store(to + size - (type == DType::f64_i32 || type == DType::i64_i32 ? 8 : sizeof(I)),
          static_cast<I>(random.number(-3, 3)));
  };
  switch (type) {
    case DType::f32:
      return random_real(random, to, false);
    case DType::f64:
      return random_real(random, to, true);
    case DType::c64:
      random_real(random, to, false);
      return random_real(random, to + 4, false);
    case DType::c128:
      random_real(random, to, true);
      return random_real(random, to + 8, true);
    case DType::f32_i32:
      random_real(random, to, false);
      return few(std::int32_t{});
    case DType::f64_i32:
      random_real(random, to, true);
      return few(std::int32_t{});
    case DType::f64_i64:
      random_real(random, to, true);
      return few(std::int64_t{});
    case DType::i32_i32:
      store(to, static_cast<std::int32_t>(random.number(-2, 2)));
      return few(std::int32_t{});
    case DType::i64_i32:
      store(to, random.number(-2, 2));
      return few(std::int32_t{});
    case DType::i64_i64:
      store(to, random.number(-2, 2));
      return few(std::int64_t{});
    default:
      if (random.number(0, 5) == 0) std::fill_n(to, size, std::byte{});  // false, for once
  }
}

// Reduces one element with another by the library.
template <class T>
T reduced(ReduceOp op, DType type, T a, T b) {
  const StridedCopy copy{0, 0, sizeof(T), 0, {}};
  select_reduce(copy, type, op)(copy, reinterpret_cast<const std::byte*>(&b), reinterpret_cast<std::byte*>(&a));
  return a;
}

}  // namespace

TEST_CASE("reduce: every operator on every type, block lengths, numbers of dimensions and alignments") {
  int pairs = 0;
  for (const DType type : kTypes)
    for (const ReduceOp op : kOps) {
      if (!defined(op, type)) continue;
      ++pairs;
      CAPTURE(to_string(type));
      CAPTURE(to_string(op));
      Random random(static_cast<std::uint64_t>(type) * 100 + static_cast<std::uint64_t>(op));
      const std::int64_t size = size_of(type);
      for (const std::int64_t block : {1, 2, 3, 5, 8, 13, 16, 21, 40})
        for (int ndims = 0; ndims <= 3; ++ndims) {
          StridedCopy copy{random.number(0, 9), random.number(0, 9), block * size, ndims, {}};
          std::int64_t src_span = copy.block, dst_span = copy.block;
          for (int dim = ndims; dim-- > 0;) {
            const std::int64_t count = random.number(1, 4);
            copy.dims[dim] = {count, src_span + random.number(0, 20), dst_span + random.number(0, 20)};
            src_span += (count - 1) * copy.dims[dim].src_stride;
            dst_span += (count - 1) * copy.dims[dim].dst_stride;
          }
          std::vector<std::byte> src(static_cast<std::size_t>(copy.src_offset + src_span));
          std::vector<std::byte> dst(static_cast<std::size_t>(copy.dst_offset + dst_span), std::byte{0x5a});
          const auto each = [&](auto&& body) {
            for (std::int64_t i = 0; i < copy.blocks(); ++i) {
              std::int64_t rest = i, from = copy.src_offset, to = copy.dst_offset;
              for (int dim = ndims; dim-- > 0;) {
                from += rest % copy.dims[dim].count * copy.dims[dim].src_stride;
                to += rest % copy.dims[dim].count * copy.dims[dim].dst_stride;
                rest /= copy.dims[dim].count;
              }
              for (std::int64_t k = 0; k < block; ++k) body(from + k * size, to + k * size);
            }
          };
          each([&](std::int64_t from, std::int64_t to) {
            random_element(random, type, src.data() + from);
            random_element(random, type, dst.data() + to);
          });
          std::vector<std::byte> expected = dst;
          each([&](std::int64_t from, std::int64_t to) { combine(op, type, expected.data() + to, src.data() + from); });
          select_reduce(copy, type, op)(copy, src.data(), dst.data());
          CAPTURE(describe(copy));
          if (type == DType::f16 || type == DType::bf16) {
            // Of two NaNs any bits will do in a sum, and the destination's otherwise: all others must be equal.
            each([&](std::int64_t, std::int64_t to) {
              const auto got = load<std::uint16_t>(dst.data() + to), want = load<std::uint16_t>(expected.data() + to);
              CHECK((got == want || (std::isnan(widened(got, type)) && std::isnan(widened(want, type)))));
            });
          } else {
            CHECK((dst == expected));
          }
        }
    }
  CHECK(pairs == 8 * 10 + 4 * 4 + 2 * 2 + 6 * 2);
}

TEST_CASE("reduce: pairs that are not defined and blocks that are no whole number of elements are refused") {
  for (const DType type : kTypes)
    for (const ReduceOp op : kOps) {
      const StridedCopy whole{0, 0, 16, 0, {}};
      if (defined(op, type)) {
        CHECK(select_reduce(whole, type, op) != nullptr);
        continue;
      }
      CHECK_THROWS_AS(select_reduce(whole, type, op), Error);
    }
  const StridedCopy whole{0, 0, 16, 0, {}};
  CHECK_THROWS_WITH_AS(select_reduce(whole, DType::f64, ReduceOp::bxor),
                       "select_reduce: the operator bxor is not defined for elements of type f64; see `defined` in "
                       "tasuki/dtype.hpp for what goes together",
                       Error);
  const StridedCopy copy{0, 0, 12, 0, {}};
  CHECK_THROWS_WITH_AS(
      select_reduce(copy, DType::f64, ReduceOp::sum),
      "select_reduce: a block of 12 B is no whole number of elements of type f64; reduce layouts built "
      "from the element type",
      Error);
  CHECK_THROWS_AS(select_reduce(copy, DType::none, ReduceOp::sum), Error);
  CHECK(!defined(static_cast<ReduceOp>(40), DType::f64));
  CHECK(!defined(ReduceOp::sum, static_cast<DType>(200)));
}

TEST_CASE("reduce: integers wrap, floats round once") {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  CHECK(reduced(ReduceOp::sum, DType::i32, kMax, std::int32_t{1}) == std::numeric_limits<std::int32_t>::min());
  CHECK(reduced(ReduceOp::sum, DType::i8, std::int8_t{-100}, std::int8_t{-100}) == std::int8_t{56});
  CHECK(reduced(ReduceOp::product, DType::i16, std::int16_t{-32768}, std::int16_t{-1}) == std::int16_t{-32768});
  CHECK(reduced(ReduceOp::product, DType::u16, std::uint16_t{65535}, std::uint16_t{65535}) == std::uint16_t{1});
  CHECK(reduced(ReduceOp::sum, DType::f64, 0.1, 0.2) == 0.1 + 0.2);
  CHECK(reduced(ReduceOp::sum, DType::f32, -0.5f, 0.25f) == -0.25f);
}

TEST_CASE("reduce: f16 and bf16 go to f32 and back without loss, and all 16-bit sums round to nearest even") {
  for (const DType type : {DType::f16, DType::bf16}) {
    CAPTURE(to_string(type));
    for (std::uint32_t i = 0; i < 1 << 16; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const std::uint16_t one = type == DType::f16 ? 0x3c00 : 0x3f80;
      const auto same = reduced(ReduceOp::product, type, bits, one);
      if (std::isnan(widened(bits, type))) {
        CHECK(same == 0x7fff);
      } else {
        CHECK(same == bits);
      }
    }
    std::mt19937 random(9);
    for (int i = 0; i < 100000; ++i) {
      const auto a = static_cast<std::uint16_t>(random()), b = static_cast<std::uint16_t>(random());
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product}) {
        const double x = widened(a, type), y = widened(b, type);
        const std::uint16_t want = narrowed(op == ReduceOp::sum ? x + y : x * y, type);
        if (std::isnan(x) || std::isnan(y)) continue;
        REQUIRE(reduced(op, type, a, b) == want);
      }
    }
  }
}

TEST_CASE("reduce: min and max take NaN before all numbers, and -0 for less than +0, from either side") {
  const double nan = std::bit_cast<double>(std::uint64_t{0x7ff8000000000123}), other = -std::nan("7");
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    CHECK(bits(reduced(op, DType::f64, nan, 1.0)) == bits(nan));
    CHECK(bits(reduced(op, DType::f64, 1.0, nan)) == bits(nan));
    CHECK(bits(reduced(op, DType::f64, nan, other)) == bits(nan));
    const double zero = op == ReduceOp::min ? -0.0 : 0.0;
    CHECK(bits(reduced(op, DType::f64, -0.0, 0.0)) == bits(zero));
    CHECK(bits(reduced(op, DType::f64, 0.0, -0.0)) == bits(zero));
  }
  CHECK(reduced(ReduceOp::min, DType::f16, std::uint16_t{0x0000}, std::uint16_t{0x8000}) == 0x8000);
  CHECK(reduced(ReduceOp::max, DType::bf16, std::uint16_t{0x7fc1}, std::uint16_t{0x3f80}) == 0x7fc1);
}

TEST_CASE("reduce: locations of equal values are the lower ones, NaN wins, and padding stays") {
  struct Pair {
    double value;
    std::int32_t index, padding;
  };
  const double nan = std::nan("");
  const auto at = [](ReduceOp op, Pair a, Pair b) { return reduced(op, DType::f64_i32, a, b); };
  for (const ReduceOp op : {ReduceOp::minloc, ReduceOp::maxloc}) {
    CHECK(at(op, {2, 7, 11}, {2, 5, 22}).index == 5);
    CHECK(at(op, {2, 5, 11}, {2, 7, 22}).index == 5);
    CHECK(at(op, {-0.0, 7, 11}, {0.0, 5, 22}).index == 5);
    CHECK(at(op, {nan, 7, 11}, {1, 5, 22}).index == 7);
    CHECK(at(op, {1, 5, 11}, {nan, 7, 22}).index == 7);
    CHECK(at(op, {nan, 7, 11}, {nan, 5, 22}).index == 5);
    CHECK(at(op, {2, 7, 11}, {2, 5, 22}).padding == 11);
  }
  CHECK(at(ReduceOp::minloc, {2, 7, 11}, {1, 9, 22}).index == 9);
  CHECK(at(ReduceOp::maxloc, {2, 7, 11}, {1, 9, 22}).index == 7);
}

TEST_CASE("negate: of all numbers that have a sign, whatever the destination was, and of no others") {
  const auto negated = [](DType type, auto number, auto destination) {
    StridedCopy copy;
    copy.block = 3 * size_of(type);
    decltype(number) from[3] = {number, number, number};
    decltype(number) to[3] = {destination, destination, destination};
    tasuki::select_reduce(copy, type, ReduceOp::negate)(copy, reinterpret_cast<const std::byte*>(from),
                                                        reinterpret_cast<std::byte*>(to));
    return to[2];
  };
  CHECK(negated(DType::i8, std::int8_t{-128}, std::int8_t{3}) == -128);
  CHECK(negated(DType::i16, std::int16_t{7}, std::int16_t{3}) == -7);
  CHECK(negated(DType::i32, 5, 3) == -5);
  CHECK(negated(DType::i64, std::int64_t{1} << 40, std::int64_t{3}) == -(std::int64_t{1} << 40));
  CHECK(negated(DType::f32, 1.5F, 3.0F) == -1.5F);
  CHECK(std::signbit(negated(DType::f64, 0.0, std::nan(""))));
  CHECK(negated(DType::f16, std::uint16_t{0x3c00}, std::uint16_t{0x7e00}) == 0xbc00);
  CHECK(negated(DType::bf16, std::uint16_t{0xbf80}, std::uint16_t{1}) == 0x3f80);
  CHECK(negated(DType::c64, std::complex<float>(1, -2), std::complex<float>()) == std::complex<float>(-1, 2));
  CHECK(negated(DType::c128, std::complex<double>(1, -2), std::complex<double>()) == std::complex<double>(-1, 2));
  for (const DType type : kTypes) {
    CHECK_FALSE(defined(ReduceOp::negate, type));
    if (has_sign(type)) continue;
    CHECK_THROWS_AS(tasuki::select_reduce({}, type, ReduceOp::negate), Error);
  }
  CHECK_FALSE(tasuki::has_sign(DType::none));
  CHECK(std::ranges::count_if(kTypes, [](DType type) { return tasuki::has_sign(type); }) == 10);
}

TEST_CASE("types and operators: names and sizes go both ways, unknown names are refused with the known ones") {
  for (const DType type : kTypes) CHECK(tasuki::dtype_from_string(to_string(type)) == type);
  for (const ReduceOp op : kOps) CHECK(tasuki::reduce_op_from_string(to_string(op)) == op);
  CHECK(tasuki::dtype_from_string("none") == DType::none);
  CHECK(size_of(DType::none) == 0);
  CHECK(size_of(DType::u16) == 2);
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::c128) == 16);
  CHECK(size_of(DType::f64_i32) == 16);
  CHECK_THROWS_WITH_AS(
      tasuki::dtype_from_string("f8"),
      "dtype_from_string: 'f8' is no number type; known are none i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 "
      "f16 bf16 c64 c128 f32_i32 f64_i32 i32_i32 i64_i32 f64_i64 i64_i64",
      Error);
  CHECK_THROWS_WITH_AS(tasuki::reduce_op_from_string("avg"),
                       "reduce_op_from_string: 'avg' is no operator of reductions; known are sum product min max band "
                       "bor bxor land lor lxor minloc maxloc own negate",
                       Error);
}
