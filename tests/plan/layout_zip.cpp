// zip: byte i of the source's sequence goes to byte i of the destination's, in as few strided copies as can be.
#include <doctest/doctest.h>

#include <array>
#include <random>

#include "layout_model.hpp"
#include "tasuki/error.hpp"

using tasuki::Error;
using tasuki::Layout;
using tasuki::Pattern;
using tasuki::StridedCopy;
using namespace layout_model;

namespace {

std::pair<Ints, Ints> expand_both(const std::vector<StridedCopy>& copies) {
  Ints from, to;
  for (const StridedCopy& copy : copies)
    for (std::int64_t i = 0; i < copy.blocks(); ++i) {
      std::int64_t rest = i, src = copy.src_offset, dst = copy.dst_offset;
      for (int dim = copy.ndims; dim-- > 0;) {
        src += rest % copy.dims[dim].count * copy.dims[dim].src_stride;
        dst += rest % copy.dims[dim].count * copy.dims[dim].dst_stride;
        rest /= copy.dims[dim].count;
      }
      for (std::int64_t byte = 0; byte < copy.block; ++byte) {
        from.push_back(src + byte);
        to.push_back(dst + byte);
      }
    }
  return {from, to};
}

// Cuts or repeats a random layout to the wanted size, keeping its irregularities.
Layout with_size(const Ints& offsets, std::int64_t size) {
  Ints displacements(offsets.begin(), offsets.begin() + size);
  return Layout::hindexed(Ints(displacements.size(), 1), displacements, Layout::bytes(1));
}

}  // namespace

TEST_CASE("zip: a face to a face, and to packed memory, is one copy") {
  const Layout cell = Layout::of<double>();
  const Layout face = Layout::subarray(Ints{66, 66, 66}, Ints{64, 64, 1}, Ints{1, 1, 64}, cell);
  const Layout halo = Layout::subarray(Ints{66, 66, 66}, Ints{64, 64, 1}, Ints{1, 1, 0}, cell);
  StridedCopy expected{face.blocks()[0].offset, halo.blocks()[0].offset, 8, 2, {}};
  expected.dims[0] = {64, 66 * 66 * 8, 66 * 66 * 8};
  expected.dims[1] = {64, 66 * 8, 66 * 8};
  CHECK(zip(face, halo) == std::vector<StridedCopy>{expected});
  CHECK(expected.src_pattern() == Pattern::stride);

  const std::vector<StridedCopy> packed = zip(face, Layout::bytes(face.size()));
  REQUIRE(packed.size() == 1);
  CHECK(packed[0].src_pattern() == Pattern::stride);
  CHECK(packed[0].dst_pattern() == Pattern::contiguous);
  CHECK(packed[0].bytes() == face.size());
  CHECK(describe(packed[0]) == "64 x 64 x 8 B, src 35888 strides 34848 528, dst 0 strides 512 8");
}

TEST_CASE("zip: nests of different shapes are refined to common strides") {
  const Layout cell = Layout::of<double>();
  // 12 blocks of 2 cells to 4 blocks of 6 cells.
  const std::vector<StridedCopy> copies = zip(Layout::vector(12, 2, 5, cell), Layout::vector(4, 6, 10, cell));
  REQUIRE(copies.size() == 1);
  StridedCopy expected{0, 0, 16, 2, {}};
  expected.dims[0] = {4, 120, 80};
  expected.dims[1] = {3, 40, 16};
  CHECK(copies[0] == expected);
  // 4096 x 4096 single numbers, too many to write out.
  const Layout big = Layout::hvector(4096, 1, 1 << 17, Layout::hvector(4096, 1, 16, cell));
  const Layout other = Layout::hvector(1024, 1, 1 << 20, Layout::hvector(16384, 1, 24, cell));
  CHECK(zip(big, other).size() == 1);
  const Layout parts = Layout::structure(Ints{1, 1, 1}, Ints{0, std::int64_t{1} << 32, std::int64_t{1} << 40},
                                         std::vector<Layout>{big, Layout::bytes(100), other});
  CHECK(zip(parts, Layout::bytes(parts.size())).size() == 3);
  CHECK(zip(Layout::bytes(parts.size()), parts).size() == 3);
}

TEST_CASE("zip: blocks that share no common size are cut at both sides' ends") {
  const std::vector<StridedCopy> copies = zip(Layout::hvector(3, 1, 20, Layout::bytes(8)),  //
                                              Layout::hvector(2, 1, 30, Layout::bytes(12)));
  REQUIRE(copies.size() == 3);  // 8 | 4, 4 | 8
  CHECK(copies[0] == StridedCopy{0, 0, 8, 0, {}});
  StridedCopy middle{20, 8, 4, 1, {}};
  middle.dims[0] = {2, 4, 22};
  CHECK(copies[1] == middle);
  CHECK(copies[2] == StridedCopy{40, 34, 8, 0, {}});
}

TEST_CASE("zip: random layouts move the same bytes as pack and unpack, and what is alike gives equal copies") {
  Random random(9);
  int zipped = 0;
  for (int i = 0; i < 4000; ++i) {
    const Pair src = random.layout(static_cast<int>(random.number(1, 5)), 800);
    const Pair dst = random.layout(static_cast<int>(random.number(1, 5)), 800);
    const std::int64_t size = std::min(src.layout.size(), dst.layout.size());
    if (size == 0) continue;
    const Layout from = src.layout.size() == size ? src.layout : with_size(src.model.offsets, size);
    const Layout to = dst.layout.size() == size ? dst.layout : with_size(dst.model.offsets, size);
    if (to.overlaps()) {
      CHECK_THROWS_AS(zip(from, to), Error);
      continue;
    }
    ++zipped;
    CAPTURE(i);
    CAPTURE(from.describe());
    CAPTURE(to.describe());
    const std::vector<StridedCopy> copies = zip(from, to);
    CHECK(expand_both(copies) == std::pair(expand(from), expand(to)));

    std::vector<unsigned char> memory(static_cast<std::size_t>(from.true_upper_bound() - from.true_lower_bound()));
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random.number(0, 255));
    std::vector<unsigned char> packed(static_cast<std::size_t>(size));
    std::vector<unsigned char> one(static_cast<std::size_t>(to.true_upper_bound() - to.true_lower_bound())), two = one;
    const auto* src_base = memory.data() - from.true_lower_bound();
    from.pack(src_base, packed.data());
    to.unpack(packed.data(), one.data() - to.true_lower_bound());
    for (const StridedCopy& copy : copies)
      select_copy(copy)(copy, reinterpret_cast<const std::byte*>(src_base),
                        reinterpret_cast<std::byte*>(two.data() - to.true_lower_bound()));
    CHECK(one == two);
  }
  CHECK(zipped > 1000);
}

TEST_CASE("continued: what is cut along its outermost dimension becomes one copy again, and nothing else does") {
  Random random(11);
  const auto joined = [](const StridedCopy& a, const StridedCopy& b) {
    auto all = expand_both({a, b});
    const auto whole = tasuki::continued(a, b);
    if (whole) CHECK(expand_both({*whole}) == all);
    return whole.has_value();
  };
  for (int ndims = 0; ndims <= 3; ++ndims) {
    CAPTURE(ndims);
    StridedCopy first{random.number(0, 100), random.number(0, 100), random.number(1, 40), ndims, {}};
    for (int d = 0; d < ndims; ++d) {
      first.dims[static_cast<std::size_t>(d)] = {random.number(1, 4), random.number(1, 300), random.number(1, 300)};
    }
    StridedCopy second = first;
    const std::int64_t src_step = ndims == 0 ? first.block : first.dims[0].count * first.dims[0].src_stride;
    const std::int64_t dst_step = ndims == 0 ? first.block : first.dims[0].count * first.dims[0].dst_stride;
    second.src_offset += src_step;
    second.dst_offset += dst_step;
    CHECK(joined(first, second));
    CHECK_FALSE(joined(second, first));
    StridedCopy other = second;  // more of them
    (ndims == 0 ? other.block : other.dims[0].count) += 3;
    CHECK(joined(first, other));
    for (std::int64_t StridedCopy::*offset : {&StridedCopy::src_offset, &StridedCopy::dst_offset}) {
      other = second;
      other.*offset += 1;
      CHECK_FALSE(joined(first, other));
    }
    if (ndims == 0) continue;
    other = second;
    other.block += 1;
    CHECK_FALSE(joined(first, other));
    other = second;
    other.dims[0].dst_stride += 1;
    CHECK_FALSE(joined(first, other));
    if (ndims == 1) continue;
    other = second;
    other.dims[1].src_stride += 1;
    CHECK_FALSE(joined(first, other));
    other = second;
    --other.ndims;
    CHECK_FALSE(joined(first, other));
  }
}

TEST_CASE("zip: a source may name a byte twice, nothing zips to nothing") {
  const Layout thrice = Layout::hvector(3, 1, 0, Layout::bytes(8));
  CHECK(zip(thrice, Layout::bytes(24)).size() == 1);
  CHECK(zip(Layout(), Layout::bytes(0)).empty());
}

TEST_CASE("zip: unequal sizes and a destination named twice are refused, with the numbers") {
  CHECK_THROWS_WITH_AS(zip(Layout::bytes(8), Layout::bytes(16)),
                       "zip: the source (8 B) names 8 bytes and the destination (16 B) 16; they must be equal", Error);
  CHECK_THROWS_WITH_AS(zip(Layout::bytes(16), Layout::hvector(2, 1, 4, Layout::bytes(8))),
                       "zip: the destination (2 x 8 B, strides 4) names a byte twice; only a source may", Error);
}

TEST_CASE("the pattern of a side is that of its normal form") {
  std::mt19937 random(7);
  const auto one_of = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  std::array<int, 5> seen{};
  for (int round = 0; round < 20000; ++round) {
    StridedCopy copy;
    copy.block = one_of(0, 3) * (one_of(0, 1) == 0 ? 1 : 9);
    copy.ndims = one_of(0, 4);
    Layout side = Layout::bytes(copy.block);
    for (int d = copy.ndims; d-- > 0;) {
      const std::int64_t stride = one_of(0, 1) == 0 ? copy.block * one_of(-6, 6) : one_of(-90, 90);
      copy.dims[d] = {one_of(1, 5), stride, 0};
      side = Layout::hvector(copy.dims[d].count, 1, copy.dims[d].src_stride, side);
    }
    CHECK(copy.src_pattern() == side.pattern());
    ++seen[static_cast<std::size_t>(side.pattern())];
  }
  for (const int times : seen) CHECK(times > 100);
}
