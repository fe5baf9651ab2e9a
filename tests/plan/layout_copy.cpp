// Copying: pack and unpack, every kernel at every block size, alignment and number of dimensions, and reordering.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "layout/kernel_trial.hpp"
#include "layout/transpose_kernels.hpp"
#include "layout_model.hpp"
#include "protocols/move.hpp"

using tasuki::CopyHint;
using tasuki::kMaxDims;
using tasuki::Layout;
using tasuki::StridedCopy;
using namespace layout_model;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes random_bytes(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.number(0, 255));
  return bytes;
}

// A copy whose destination names no byte twice, its dimensions in random order and direction.
StridedCopy random_copy(Random& random, std::int64_t block, int ndims, std::int64_t max_count) {
  StridedCopy copy;
  copy.block = block;
  copy.ndims = ndims;
  std::int64_t src_span = block, dst_span = block;
  for (const std::int64_t dim : random.permutation(ndims)) {
    const std::int64_t count = random.number(1, max_count);
    const std::int64_t src_stride = random.number(0, 2) == 0 ? src_span : src_span + random.number(0, 40);
    const std::int64_t dst_stride = random.number(0, 2) == 0 ? dst_span : dst_span + random.number(0, 40);
    src_span += (count - 1) * src_stride;
    dst_span += (count - 1) * dst_stride;
    const bool src_back = random.number(0, 3) == 0, dst_back = random.number(0, 3) == 0;
    copy.dims[static_cast<std::size_t>(dim)] = {count, src_back ? -src_stride : src_stride,
                                                dst_back ? -dst_stride : dst_stride};
    if (src_back) copy.src_offset += (count - 1) * src_stride;
    if (dst_back) copy.dst_offset += (count - 1) * dst_stride;
  }
  copy.src_offset += random.number(0, 70);
  copy.dst_offset += random.number(0, 70);
  return copy;
}

void check_copy(Random& random, const StridedCopy& copy, const StridedCopy& performed, CopyHint hint) {
  const auto pairs = moves(copy);
  std::size_t src_size = 1, dst_size = 1;
  for (const auto& [from, to] : pairs) {
    src_size = std::max(src_size, static_cast<std::size_t>(from) + 1);
    dst_size = std::max(dst_size, static_cast<std::size_t>(to) + 1);
  }
  const Bytes src = random_bytes(random, src_size);
  Bytes dst = random_bytes(random, dst_size);
  Bytes expected = dst;
  for (const auto& [from, to] : pairs) expected[static_cast<std::size_t>(to)] = src[static_cast<std::size_t>(from)];
  select_copy(performed, hint)(performed, reinterpret_cast<const std::byte*>(src.data()),
                               reinterpret_cast<std::byte*>(dst.data()));
  CHECK(dst == expected);
}

}  // namespace

TEST_CASE("pack and unpack: random layouts gather and scatter their bytes in order, and touch no others") {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const Pair pair = random.layout(static_cast<int>(random.number(1, 5)), 3000);
    const Layout& layout = pair.layout;
    const std::int64_t low = layout.true_lower_bound();
    const Bytes memory = random_bytes(random, static_cast<std::size_t>(layout.true_upper_bound() - low));
    const auto at = [low](std::int64_t offset) { return static_cast<std::size_t>(offset - low); };
    Bytes packed(static_cast<std::size_t>(layout.size()));
    layout.pack(memory.data() - low, packed.data());
    Bytes expected;
    for (const std::int64_t offset : pair.model.offsets) expected.push_back(memory[at(offset)]);
    CAPTURE(i);
    CAPTURE(layout.describe());
    CHECK(packed == expected);

    if (layout.overlaps()) continue;
    Bytes target = random_bytes(random, memory.size());
    Bytes wanted = target;
    for (std::size_t byte = 0; byte < packed.size(); ++byte) wanted[at(pair.model.offsets[byte])] = packed[byte];
    layout.unpack(packed.data(), target.data() - low);
    CHECK(target == wanted);
  }
}

TEST_CASE("copy kernels: rows become columns, in whole tiles and parts of them, forwards and backwards") {
  Random random(7);
  for (const std::int64_t block : {4, 8, 16}) {
    for (const std::int64_t rows : {15, 16, 17, 32, 45, 64, 71}) {
      for (const std::int64_t columns : {16, 31, 33, 70}) {
        for (const std::int64_t planes : {1, 3}) {
          const StridedCopy::Dim plane{planes, (rows + 2) * columns * block, rows * (columns + 3) * block};
          const StridedCopy::Dim down{rows, block, (columns + 3) * block};
          const StridedCopy::Dim across{columns, (rows + 2) * block, block};
          // As `z, y, x` to `x, y, z` has them, the two need not be neighbours.
          for (const auto& dims : {std::array{plane, down, across}, std::array{plane, across, down},
                                   std::array{down, plane, across}, std::array{across, down, plane}}) {
            StridedCopy copy{5, 3, block, 3, {}};
            std::copy(dims.begin(), dims.end(), copy.dims.begin());
            CAPTURE(describe(copy));
            CHECK(turned(copy).has_value() == (rows >= 16));
            check_copy(random, copy, copy, CopyHint::cached);
            StridedCopy back = copy;  // the source from its last column to its first
            auto& turned = *std::find(back.dims.begin(), back.dims.end(), across);
            back.src_offset += (columns - 1) * turned.src_stride;
            turned.src_stride = -turned.src_stride;
            check_copy(random, back, back, CopyHint::cached);
          }
        }
      }
    }
  }
}

TEST_CASE("what turns rows into columns costs the lines that it touches, and not its numbers") {
  tasuki::Move move;
  StridedCopy copy{0, 0, 8, 2, {}};
  copy.dims[0] = {64, 8, 64 * 8};
  copy.dims[1] = {64, 64 * 8, 8};
  move.copies = {copy};
  CHECK(move.runs() == 64 * 64);
  CHECK(move.other_runs() == 0);
  CHECK(move.turned_lines() == 64 * 64 / 8);
  move.copies[0].dims[1].dst_stride = 16;  // no longer dense
  CHECK(move.other_runs() == 64 * 64);
  CHECK(move.turned_lines() == 0);
}

TEST_CASE("copy kernels: every block size, 0 to 7 dimensions, any alignment and direction, both hints") {
  Random random(6);
  for (std::int64_t block = 1; block <= 140; ++block)
    for (int ndims = 0; ndims <= kMaxDims; ++ndims) {
      const std::int64_t max_count = ndims < 3 ? 12 : ndims < 5 ? 4 : 2;
      const StridedCopy copy = random_copy(random, block, ndims, max_count);
      CAPTURE(describe(copy));
      check_copy(random, copy, copy, CopyHint::cached);
      check_copy(random, copy, copy, CopyHint::streaming);
    }
  for (const std::int64_t block :
       {1, 2, 3, 4, 8, 12, 16, 64, 72, 100, 128, 256, 264, 4096, 5000}) {  // long rows, and rows a page apart
    for (const std::int64_t src_stride : {block, block + 3, std::int64_t{8192}})
      for (const std::int64_t dst_stride : {block, block + 5, std::int64_t{8192}}) {
        StridedCopy copy{3, 1, block, 1, {}};
        copy.dims[0] = {101, src_stride, dst_stride};
        CAPTURE(describe(copy));
        check_copy(random, copy, copy, CopyHint::cached);
        check_copy(random, copy, copy, CopyHint::streaming);
      }
  }
}

TEST_CASE("copy kernels: blocks in pairs that are neighbours on one side, odd counts, the partner before or behind") {
  Random random(9);
  for (const std::int64_t block : {1, 2, 3, 4, 8, 12, 16, 20, 24, 40})
    for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 37, 101})
      for (const std::int64_t apart : {std::int64_t{520}, std::int64_t{-504}, 3 * block})
        for (const bool gathers : {true, false}) {
          StridedCopy copy{1, 2, block, 3, {}};
          const std::int64_t row = 607;  // further than the partner, so that nothing is written twice
          const std::int64_t rows = count * row + 6;
          const StridedCopy::Dim far[] = {{3, rows, rows}, {count, row, row}, {2, apart, apart}};
          const StridedCopy::Dim near[] = {{3, 0, 2 * block * count}, {count, 0, 2 * block}, {2, 0, block}};
          for (int d = 0; d < 3; ++d) {
            copy.dims[d] = gathers ? StridedCopy::Dim{far[d].count, far[d].src_stride, near[d].dst_stride}
                                   : StridedCopy::Dim{far[d].count, near[d].dst_stride, far[d].dst_stride};
          }
          if (apart < 0) (gathers ? copy.src_offset : copy.dst_offset) -= apart;
          CAPTURE(describe(copy));
          check_copy(random, copy, copy, CopyHint::cached);
        }
}

TEST_CASE("copy kernels: a zero count or an empty block moves nothing") {
  for (const std::int64_t block : {0, 1, 8, 40, 500})
    for (int zero = 0; zero < 4; ++zero)
      for (const CopyHint hint : {CopyHint::cached, CopyHint::streaming}) {
        StridedCopy copy{0, 0, block, 4, {}};
        for (int dim = 0; dim < 4; ++dim) copy.dims[dim] = {block > 0 && dim == zero ? 0 : 2, 8, 8};
        select_copy(copy, hint)(copy, nullptr, nullptr);
        CHECK(copy.bytes() == 0);
      }
}

TEST_CASE("reordered: moves the same bytes to the same places, the destination forwards, dimensions merged") {
  Random random(8);
  for (int i = 0; i < 2000; ++i) {
    const StridedCopy copy = random_copy(random, random.number(1, 20), static_cast<int>(random.number(0, 7)), 3);
    const StridedCopy better = reordered(copy);
    CAPTURE(describe(copy));
    CAPTURE(describe(better));
    auto before = moves(copy), after = moves(better);
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    CHECK(before == after);
    for (int dim = 0; dim < better.ndims; ++dim) {
      CHECK(better.dims[dim].dst_stride > 0);
      CHECK(better.dims[dim].count > 1);
      if (dim > 0) CHECK(better.dims[dim - 1].dst_stride >= better.dims[dim].dst_stride);
    }
    CHECK(reordered(better) == better);
    check_copy(random, copy, better, CopyHint::cached);
  }
}

TEST_CASE("reordered: a matrix copied by columns becomes one block") {
  StridedCopy columns{0, 0, 8, 2, {}};
  columns.dims[0] = {16, 8, 8};
  columns.dims[1] = {32, 128, 128};
  CHECK(reordered(columns) == StridedCopy{0, 0, 4096, 0, {}});
  StridedCopy backwards{248, 248, 8, 1, {}};
  backwards.dims[0] = {32, -8, -8};
  CHECK(reordered(backwards) == StridedCopy{0, 0, 256, 0, {}});
}

TEST_CASE("fused: the two joined copies' bytes and no others, and only where lines are shared") {
  StridedCopy low;
  low.block = 8;
  low.ndims = 2;
  low.dims[0] = {33, 8000, 8000};
  low.dims[1] = {31, 240, 240};
  low.src_offset = 200;
  low.dst_offset = 8;
  StridedCopy high = low;
  high.src_offset = 16;
  high.dst_offset = 208;
  const auto pair = tasuki::fused(low, high);
  REQUIRE(pair.has_value());
  auto expected = moves(low);
  const auto rest = moves(high);
  expected.insert(expected.end(), rest.begin(), rest.end());
  auto joined = moves(*pair);
  std::sort(expected.begin(), expected.end());
  std::sort(joined.begin(), joined.end());
  CHECK(joined == expected);

  StridedCopy other = high;
  other.dims[1].count = 30;
  CHECK_FALSE(tasuki::fused(low, other).has_value());  // another shape
  other = high;
  other.block = low.block = 64;
  CHECK_FALSE(tasuki::fused(low, other).has_value());  // whole lines
  low.block = 8;
  low.dims[0].count = high.dims[0].count = 2;
  CHECK_FALSE(tasuki::fused(low, high).has_value());  // small enough to stay in the cache
}

TEST_CASE("fused: copies that take turns on one side become pairs, with one dimension and on either side") {
  for (const bool gathers : {true, false}) {
    StridedCopy low{1000, 16, 8, 1, {}};
    low.dims[0] = {301, 528, 16};
    StridedCopy high = low;
    high.src_offset -= 504;
    high.dst_offset += 8;
    if (!gathers) {
      for (StridedCopy* copy : {&low, &high}) {
        std::swap(copy->src_offset, copy->dst_offset);
        std::swap(copy->dims[0].src_stride, copy->dims[0].dst_stride);
      }
    }
    const auto pairs = tasuki::fused(low, high);
    REQUIRE(pairs.has_value());
    auto expected = moves(low);
    const auto rest = moves(high);
    expected.insert(expected.end(), rest.begin(), rest.end());
    auto joined = moves(*pairs);
    std::sort(expected.begin(), expected.end());
    std::sort(joined.begin(), joined.end());
    CHECK(joined == expected);
    CHECK(pairs->dims[1] == StridedCopy::Dim{2, gathers ? -504 : 8, gathers ? 8 : -504});
    StridedCopy other = high;
    other.dims[0].count = 300;
    CHECK_FALSE(tasuki::fused(low, other).has_value());
  }
}

namespace {

int runs = 0;

void counted(const StridedCopy& copy, const std::byte* src, std::byte* dst) {
  ++runs;
  tasuki::select_copy(copy)(copy, src, dst);
}

}  // namespace

TEST_CASE("where nobody can try kernels out the usual one is the faster, and none is run") {
  StridedCopy copy;
  copy.block = 8;
  CHECK_FALSE(tasuki::clearly_faster(counted, tasuki::select_copy(copy), copy));
  CHECK(runs == 0);
}
