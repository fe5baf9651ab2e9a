// select_add: sums every number type over any nest, and refuses blocks that are no whole numbers.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "layout_model.hpp"
#include "tasuki/error.hpp"

using tasuki::DType;
using tasuki::Error;
using tasuki::StridedCopy;
using namespace layout_model;

namespace {

template <class T>
void check_add(DType type) {
  Random random(static_cast<std::uint64_t>(type) + 100);
  for (std::int64_t block = 1; block <= 40; ++block)
    for (int ndims = 0; ndims <= 4; ++ndims) {
      const auto size = static_cast<std::int64_t>(sizeof(T));
      StridedCopy copy{random.number(0, 9), random.number(0, 9), block * size, ndims, {}};
      std::int64_t src_span = copy.block, dst_span = copy.block;
      for (int dim = ndims; dim-- > 0;) {
        const std::int64_t count = random.number(1, 4);
        copy.dims[dim] = {count, src_span + random.number(0, 20), dst_span + random.number(0, 20)};
        src_span += (count - 1) * copy.dims[dim].src_stride;
        dst_span += (count - 1) * copy.dims[dim].dst_stride;
      }
      std::vector<std::byte> src(static_cast<std::size_t>(copy.src_offset + src_span));
      std::vector<std::byte> dst(static_cast<std::size_t>(copy.dst_offset + dst_span));
      // Small numbers everywhere that a number may begin would overlap; fill each element, then add element by element.
      std::vector<std::byte> expected;
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
        const T a = static_cast<T>(random.number(0, 60)), b = static_cast<T>(random.number(0, 60));
        std::memcpy(src.data() + from, &a, sizeof(T));
        std::memcpy(dst.data() + to, &b, sizeof(T));
      });
      expected = dst;
      each([&](std::int64_t from, std::int64_t to) {
        T a, b;
        std::memcpy(&a, src.data() + from, sizeof(T));
        std::memcpy(&b, expected.data() + to, sizeof(T));
        b = static_cast<T>(a + b);
        std::memcpy(expected.data() + to, &b, sizeof(T));
      });
      select_add(copy, type)(copy, src.data(), dst.data());
      CAPTURE(describe(copy));
      CHECK(dst == expected);
    }
}

}  // namespace

TEST_CASE("add: every number type, block length and number of dimensions") {
  check_add<std::int8_t>(DType::i8);
  check_add<std::int16_t>(DType::i16);
  check_add<std::int32_t>(DType::i32);
  check_add<std::int64_t>(DType::i64);
  check_add<std::uint8_t>(DType::u8);
  check_add<std::uint16_t>(DType::u16);
  check_add<std::uint32_t>(DType::u32);
  check_add<std::uint64_t>(DType::u64);
  check_add<float>(DType::f32);
  check_add<double>(DType::f64);
}

TEST_CASE("add: signed integers wrap instead of overflowing, floats round once") {
  const auto add = [](auto a, auto b, DType type) {
    const StridedCopy copy{0, 0, sizeof(a), 0, {}};
    select_add(copy, type)(copy, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<std::byte*>(&b));
    return b;
  };
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  CHECK(add(kMax, std::int32_t{1}, DType::i32) == std::numeric_limits<std::int32_t>::min());
  CHECK(add(std::int8_t{-100}, std::int8_t{-100}, DType::i8) == std::int8_t{56});
  CHECK(add(0.1, 0.2, DType::f64) == 0.1 + 0.2);
  CHECK(add(-0.5f, 0.25f, DType::f32) == -0.25f);
}

TEST_CASE("add: blocks that are no whole number of elements are refused") {
  const StridedCopy copy{0, 0, 12, 0, {}};
  CHECK_THROWS_WITH_AS(select_add(copy, DType::f64),
                       "select_add: a block of 12 B is no whole number of elements of type f64; add layouts built from "
                       "the element type",
                       Error);
  CHECK_THROWS_AS(select_add(copy, DType::none), Error);
}

TEST_CASE("number types: names and sizes go both ways, unknown names are refused with the known ones") {
  for (const DType type : {DType::none, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                           DType::u32, DType::u64, DType::f32, DType::f64})
    CHECK(tasuki::dtype_from_string(to_string(type)) == type);
  CHECK(size_of(DType::none) == 0);
  CHECK(size_of(DType::u16) == 2);
  CHECK(size_of(DType::f64) == 8);
  CHECK_THROWS_WITH_AS(
      tasuki::dtype_from_string("f16"),
      "dtype_from_string: 'f16' is no number type; known are none i8 i16 i32 i64 u8 u16 u32 u64 f32 f64", Error);
}
