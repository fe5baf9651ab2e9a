// Parts of strided copies and the bytes that they touch, against lists of all bytes.
#include "layout/cut.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace tasuki;

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // byte read, byte written

void append(const StridedCopy& copy, Pairs& pairs, std::int64_t src, std::int64_t dst, int dim = 0) {
  if (dim == copy.ndims) {
    for (std::int64_t i = 0; i < copy.block; ++i) pairs.emplace_back(src + i, dst + i);
    return;
  }
  const auto& d = copy.dims[static_cast<std::size_t>(dim)];
  for (std::int64_t i = 0; i < d.count; ++i)
    append(copy, pairs, src + i * d.src_stride, dst + i * d.dst_stride, dim + 1);
}

// In the order of the nest.
Pairs pairs_of(std::span<const StridedCopy> copies) {
  Pairs pairs;
  for (const StridedCopy& copy : copies) append(copy, pairs, copy.src_offset, copy.dst_offset);
  return pairs;
}
Pairs pairs_of(const StridedCopy& copy) {
  return pairs_of({&copy, 1});
}

std::int64_t between(std::mt19937& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// Strides of any sign; `least` steps a dimension.
StridedCopy random_copy(std::mt19937& random, std::int64_t least = 1) {
  StridedCopy copy;
  copy.src_offset = between(random, -300, 300);
  copy.dst_offset = between(random, -300, 300);
  copy.block = between(random, 1, random() % 3 == 0 ? 400 : 13);
  copy.ndims = static_cast<std::int32_t>(random() % 4);
  for (int d = 0; d < copy.ndims; ++d) {
    copy.dims[static_cast<std::size_t>(d)] = {between(random, least, 6), between(random, -90, 90),
                                              between(random, -90, 90)};
  }
  return copy;
}

ByteRange range_of(const Pairs& pairs, std::int64_t Pairs::value_type::*side, std::int64_t otherwise) {
  if (pairs.empty()) return {otherwise, otherwise};
  const auto [least, most] =
      std::minmax_element(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return a.*side < b.*side; });
  return {(*least).*side, (*most).*side + 1};
}

}  // namespace

TEST_CASE("ranges go from the first to the last byte that is read or written") {
  std::mt19937 random(41);
  for (int round = 0; round < 2000; ++round) {
    const StridedCopy copy = random_copy(random, round % 5 == 0 ? 0 : 1);
    const Pairs pairs = pairs_of(copy);
    CHECK(read_range(copy) == range_of(pairs, &Pairs::value_type::first, copy.src_offset));
    CHECK(written_range(copy) == range_of(pairs, &Pairs::value_type::second, copy.dst_offset));
  }
}

TEST_CASE("ranges meet if they share a byte, and one that includes another has the bytes of both") {
  const auto has = [](const ByteRange& range, std::int64_t byte) { return range.begin <= byte && byte < range.end; };
  for (std::int64_t code = 0; code < 6 * 6 * 6 * 6; ++code) {
    const ByteRange a{code % 6, std::max(code % 6, code / 6 % 6)};
    const ByteRange b{code / 36 % 6, std::max(code / 36 % 6, code / 216)};
    bool shared = false;
    std::int64_t first = 6;
    std::int64_t last = -1;
    for (std::int64_t byte = 0; byte < 6; ++byte) {
      shared = shared || (has(a, byte) && has(b, byte));
      if (!has(a, byte) && !has(b, byte)) continue;
      first = std::min(first, byte);
      last = byte;
    }
    CHECK(a.meets(b) == shared);
    ByteRange both = a;
    both.include(b);
    if (last >= 0) CHECK(both == ByteRange{first, last + 1});
    if (last < 0) CHECK(both.begin == both.end);
  }
}

TEST_CASE("steps of the outermost dimension and bytes of every block are those of the whole") {
  std::mt19937 random(42);
  for (int round = 0; round < 1000; ++round) {
    const StridedCopy copy = random_copy(random);
    const Pairs whole = pairs_of(copy);
    const std::int64_t first = between(random, 0, copy.block - 1);
    const std::int64_t last = between(random, first + 1, copy.block);
    Pairs expected;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i) % copy.block;
      if (first <= at && at < last) expected.push_back(whole[i]);
    }
    CHECK(pairs_of(bytes_of(copy, first, last)) == expected);
    CHECK(pairs_of(without_single_step(copy)) == whole);
    if (copy.ndims == 0) {
      CHECK(without_single_step(copy) == copy);
      continue;
    }
    const std::int64_t steps = copy.dims[0].count;
    const std::int64_t begin = between(random, 0, steps - 1);
    const std::int64_t end = between(random, begin + 1, steps);
    const auto a_step = static_cast<std::ptrdiff_t>(whole.size()) / steps;
    const StridedCopy part = steps_of(copy, begin, end);
    CHECK(part.ndims == copy.ndims);
    CHECK(pairs_of(part) == Pairs(whole.begin() + begin * a_step, whole.begin() + end * a_step));
    CHECK(without_single_step(part).ndims == copy.ndims - (end - begin == 1 ? 1 : 0));
    // What is left out leaves nothing behind: plans compare and refuse dimensions beyond the last.
    for (int d = without_single_step(part).ndims; d < kMaxDims; ++d)
      CHECK(without_single_step(part).dims[static_cast<std::size_t>(d)] == StridedCopy::Dim{});
  }
}

TEST_CASE("pieces by bytes are the whole, in its order, and no larger than asked or a unit") {
  std::mt19937 random(43);
  for (int round = 0; round < 1000; ++round) {
    const StridedCopy copy = random_copy(random);
    const std::int64_t most = between(random, 1, random() % 2 == 0 ? 200 : 5000);
    std::vector<StridedCopy> pieces{random_copy(random)};  // pieces are added to what is there
    const StridedCopy before = pieces.front();
    cut_by_bytes(copy, most, pieces);
    CHECK(pieces.front() == before);
    pieces.erase(pieces.begin());
    CHECK(pairs_of(pieces) == pairs_of(copy));
    for (const StridedCopy& piece : pieces) {
      CHECK(piece.bytes() > 0);
      CHECK(piece.bytes() <= std::max(most, kCutUnit));
      if (piece.bytes() > most) CHECK(piece.blocks() == 1);
    }
    if (copy.bytes() <= most) CHECK(pieces.size() == 1);
  }
}

TEST_CASE("a block is cut at multiples of the unit, into pieces that differ by no more than one") {
  for (const std::int64_t block : {65, 128, 1000, 4096, 100001}) {
    for (const std::int64_t most : {1, 64, 100, 640, 4095}) {
      StridedCopy copy;
      copy.block = block;
      std::vector<StridedCopy> pieces;
      cut_by_bytes(copy, most, pieces);
      std::int64_t least = block;
      std::int64_t largest = 0;
      std::int64_t at = 0;
      for (const StridedCopy& piece : pieces) {
        CHECK(piece.src_offset == at);
        CHECK(piece.src_offset % kCutUnit == 0);
        at += piece.block;
        largest = std::max(largest, piece.block);
        if (at < block) least = std::min(least, piece.block);
      }
      CHECK(at == block);
      CHECK(largest - least <= kCutUnit);
    }
  }
}

TEST_CASE("parts hold every byte once, each copy's in its order, with as many steps but one") {
  std::mt19937 random(44);
  for (int round = 0; round < 500; ++round) {
    std::vector<StridedCopy> copies(1 + random() % 3);
    for (StridedCopy& copy : copies) copy = random_copy(random);
    const std::int64_t parts = between(random, 1, 9);
    const auto lists = cut_in_parts(copies, parts);
    REQUIRE(std::ssize(lists) == parts);
    std::vector<Pairs> got(copies.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> steps(copies.size(), {1 << 30, 0});
    for (std::int64_t p = 0; p < parts; ++p) {
      std::size_t next = 0;  // in the list
      for (std::size_t k = 0; k < copies.size(); ++k) {
        const StridedCopy& copy = copies[k];
        const std::int64_t count = copy.ndims > 0 ? copy.dims[0].count : (copy.block + kCutUnit - 1) / kCutUnit;
        const bool has = count * p / parts < count * (p + 1) / parts;
        std::int64_t part_steps = 0;
        if (has) {
          REQUIRE(next < lists[static_cast<std::size_t>(p)].size());
          const StridedCopy& part = lists[static_cast<std::size_t>(p)][next++];
          append(part, got[k], part.src_offset, part.dst_offset);
          part_steps = part.ndims > 0 ? part.dims[0].count : (part.block + kCutUnit - 1) / kCutUnit;
        }
        steps[k].first = std::min(steps[k].first, part_steps);
        steps[k].second = std::max(steps[k].second, part_steps);
      }
      CHECK(next == lists[static_cast<std::size_t>(p)].size());
    }
    for (std::size_t k = 0; k < copies.size(); ++k) {
      CHECK(got[k] == pairs_of(copies[k]));
      CHECK(steps[k].second - steps[k].first <= 1);
    }
  }
}
