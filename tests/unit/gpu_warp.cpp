// The code that a GPU's warps run, run on a processor: tiles of strided copies, stamped lines, additions.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <vector>

#include "engines/gpu/task.hpp"
#include "gpu_view.hpp"
#include "plan/builder.hpp"
#include "warp.hpp"

namespace {

using namespace tasuki;

constexpr std::size_t kField = 60000;

// A copy within kField bytes on the scattered side, in words.
StridedCopy random_copy(std::mt19937& random) {
  StridedCopy copy;
  copy.src_offset = 4 * static_cast<std::int64_t>(random() % 100);
  copy.block = 4 * static_cast<std::int64_t>(1 + random() % (random() % 2 == 0 ? 3 : 40));
  copy.ndims = static_cast<int>(random() % 3);
  std::int64_t stride = copy.block;
  for (int d = copy.ndims - 1; d >= 0; --d) {
    stride += 4 * static_cast<std::int64_t>(random() % 5);
    const auto count = static_cast<std::int64_t>(1 + random() % 17);
    copy.dims[d] = {count, stride, 0};
    stride *= count;
  }
  return copy;
}

StridedCopy turned(StridedCopy copy) {
  std::swap(copy.src_offset, copy.dst_offset);
  for (int d = 0; d < copy.ndims; ++d) std::swap(copy.dims[d].src_stride, copy.dims[d].dst_stride);
  return copy;
}

// Packed on the side of the destination, from the beginning of the given line on.
StridedCopy packed(StridedCopy copy, std::int64_t line) {
  copy.dst_offset = line * kStampedData;
  std::int64_t stride = copy.block;
  for (int d = copy.ndims - 1; d >= 0; --d) {
    copy.dims[d].dst_stride = stride;
    stride *= copy.dims[d].count;
  }
  return copy;
}

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A task of one copy, and where it is.
struct Work {
  TaskDraft task;
  const std::byte* src;
  std::byte* dst;

  Work(const StridedCopy& copy, const Located& from, const Located& to, std::int64_t element = 0)
      : src(from.base), dst(to.base) {
    task.steps.resize(1);
    task.steps[0].copies = 1;
    task.add_copy(copy, from, to, element);
    REQUIRE(task.copies.size() == 1);
  }
  const GpuCopy& copy() const { return task.copies[0]; }
  std::uint32_t lines() const { return (copy().units + kLineWords - 1) / kLineWords; }
  GpuLines tile(std::uint32_t first, std::uint32_t most) const {
    return {copy(), task.dims.data(), first, std::min(most, lines() - first), src, dst};
  }
};

Located at(std::vector<std::byte>& bytes, bool stamped = false) {
  return {bytes.data(), 0, 1, false, stamped, nullptr};
}

const auto forever = [] { return true; };

template <int Most>
void fill(const Work& work, std::uint32_t stamp) {
  for (std::uint32_t first = 0; first < work.lines(); first += Most) {
    warp::run([&] { fill_lines<Most>(work.tile(first, Most), stamp); });
  }
}

template <int Most, class Patient>
bool take(const Work& work, std::uint32_t stamp, const Patient& patient) {
  std::atomic<int> came{0};
  std::uint32_t tiles = 0;
  for (std::uint32_t first = 0; first < work.lines(); first += Most, ++tiles) {
    warp::run([&] { came += take_lines<Most>(work.tile(first, Most), stamp, patient) ? 1 : 0; });
  }
  CHECK((came == 0 || came == static_cast<int>(32 * tiles)));  // all threads of a warp say the same
  return came > 0;
}

}  // namespace

TEST_CASE("warps: what goes into stamped lines comes out of them, whatever the epoch, and nothing else is touched") {
  std::mt19937 random(21);
  for (int round = 0; round < 40; ++round) {
    const StridedCopy copy = packed(random_copy(random), static_cast<std::int64_t>(random() % 3));
    auto from = random_bytes(random, kField);
    auto to = random_bytes(random, kField);
    std::vector<std::byte> ring(static_cast<std::size_t>(copy.bytes() / kStampedData + 4) * kStampedLine);
    const auto stamp = static_cast<std::uint32_t>(random());
    const Work put(copy, at(from), at(ring, true));
    const Work get(turned(copy), at(ring, true), at(to));
    if (round % 2 == 0) {
      fill<1>(put, stamp);
    } else {
      fill<kTileRows>(put, stamp);
    }
    auto expected = to;
    for (std::uint32_t n = 0; n < put.copy().units; ++n) {
      std::int64_t offset = copy.src_offset;
      std::int64_t rest = n;
      offset += rest % (copy.block / 4) * 4;
      rest /= copy.block / 4;
      for (int d = copy.ndims - 1; d >= 0; --d) {
        offset += rest % copy.dims[d].count * copy.dims[d].src_stride;
        rest /= copy.dims[d].count;
      }
      for (std::size_t byte = 0; byte < 4; ++byte) {
        const auto place = static_cast<std::size_t>(offset) + byte;
        expected[place] = from[place];
        const auto line = static_cast<std::size_t>(put.copy().dst_offset);
        REQUIRE(ring[line + gpu_view::in_lines(n, byte)] == from[place]);
      }
      std::uint32_t word = 0;
      CHECK(load_word(ring.data() + put.copy().dst_offset, n, stamp, word, forever));
      CHECK(std::memcmp(&word, from.data() + offset, 4) == 0);
    }
    if (round % 3 == 0) {
      CHECK(take<1>(get, stamp, forever));
    } else {
      CHECK(take<kTileRows>(get, stamp, forever));
    }
    CHECK((to == expected));
  }
}

TEST_CASE("warps: lines are taken as they come, and what never comes is given up by all threads") {
  std::mt19937 random(22);
  StridedCopy copy;
  copy.block = 4 * 700;  // six lines, the last one with 100 words
  auto from = random_bytes(random, 2800);
  std::vector<std::byte> to(2800);
  std::vector<std::byte> ring(6 * kStampedLine);
  for (std::uint32_t epoch = 254; epoch < 260; ++epoch) {
    for (auto& byte : from) byte = static_cast<std::byte>(random());
    const Work put(copy, at(from), at(ring, true));
    const Work get(copy, at(ring, true), at(to));
    std::atomic<int> looks{0};
    const auto few = [&] { return ++looks < 400; };
    CHECK(!take<kTileRows>(get, epoch, few));  // the last epoch's are there
    CHECK((to != from));
    std::uint32_t word = 0;
    CHECK(!load_word(ring.data(), 699, epoch, word, few));
    std::jthread sender([&] { fill<1>(put, epoch); });
    CHECK(take<kTileRows>(get, epoch, forever));
    CHECK((to == from));
  }
}

TEST_CASE("warps: tiles of units of all sizes") {
  std::mt19937 random(23);
  for (int round = 0; round < 40; ++round) {
    StridedCopy copy = packed(random_copy(random), 0);
    copy.dst_offset = 4 * static_cast<std::int64_t>(random() % 9);
    auto from = random_bytes(random, kField);
    std::vector<std::byte> to(kField);
    alignas(16) static std::array<std::byte, 2 * kField> aligned;
    std::copy(from.begin(), from.end(), aligned.begin());
    const Work work(copy, {aligned.data(), 0, 1, false, false, nullptr},
                    {aligned.data() + kField, 0, 1, false, false, nullptr});
    std::fill(aligned.begin() + kField, aligned.end(), std::byte{});
    const std::uint32_t rows = round % 2 == 0 ? 1 : kTileRows;
    const std::uint32_t step = work.copy().row_units * rows;
    for (std::uint32_t first = 0; first < work.copy().units; first += step) {
      warp::run([&] {
        const std::uint32_t end = std::min(work.copy().units, first + step);
        move_units({work.copy(), work.task.dims.data(), first + threadIdx.x, end, work.src, work.dst}, rows);
      });
    }
    select_copy(copy)(copy, from.data(), to.data());
    CHECK(std::equal(to.begin(), to.end(), aligned.begin() + kField));
  }
}

TEST_CASE("warps: reductions of all types and operators, out of lines, out of packed memory and from anywhere") {
  std::mt19937 random(24);
  constexpr std::int64_t kCount = 131;
  for (int type = 1; type <= static_cast<int>(DType::i64_i64); ++type) {
    for (int op = 0; op <= static_cast<int>(ReduceOp::maxloc); ++op) {
      const auto dtype = static_cast<DType>(type);
      const auto combine = static_cast<ReduceOp>(op);
      if (!defined(combine, dtype)) continue;
      CAPTURE(to_string(dtype));
      CAPTURE(to_string(combine));
      const std::int64_t size = size_of(dtype);
      const std::int64_t shift = op % 2;  // every other operator meets elements that lie anywhere
      StridedCopy each;
      each.block = size;
      each.ndims = 1;
      each.dims[0] = {kCount, size, 2 * size};
      each.dst_offset = size;
      const auto bytes = static_cast<std::size_t>(kCount * size);
      auto from = random_bytes(random, bytes + 1);
      const auto to = random_bytes(random, 2 * bytes + 17);
      // Small numbers: no NaNs, whose bits may differ.
      const bool numbers = dtype == DType::f32 || dtype == DType::c64 || dtype == DType::f64 || dtype == DType::c128;
      std::vector<std::byte> start = to;
      const auto fill = [&](std::vector<std::byte>& memory, std::size_t begin) {
        const bool wide = dtype == DType::f64 || dtype == DType::c128;
        for (std::size_t at = begin; at + 8 <= memory.size(); at += wide ? 8 : 4) {
          const double value = static_cast<double>(random() % 1000) / 7 - 70;
          const auto narrow = static_cast<float>(value);
          std::memcpy(&memory[at], wide ? static_cast<const void*>(&value) : &narrow, wide ? 8 : 4);
        }
      };
      if (numbers) fill(from, static_cast<std::size_t>(shift));
      if (numbers) fill(start, static_cast<std::size_t>(shift));
      std::vector<std::byte> expected = start;
      select_reduce(each, dtype, combine)(each, from.data() + shift, expected.data() + shift);
      for (const bool stamped : {false, true}) {
        if (stamped && size < 4) continue;
        std::vector<std::byte> ring(static_cast<std::size_t>((kCount * size / kStampedData + 2) * kStampedLine));
        StridedCopy whole;
        whole.block = kCount * size;
        std::vector<std::byte> packed(from.begin() + shift, from.end());  // lines are filled with whole words
        const Located values{stamped ? packed.data() : from.data() + shift, 0, 1, false, false, nullptr};
        std::vector<std::byte> got = start;
        const Located target{got.data() + shift, 0, 1, false, false, nullptr};
        if (stamped) ::fill<kTileRows>(Work(whole, values, at(ring, true)), 7);
        const Work work(each, stamped ? at(ring, true) : values, target, size);
        std::atomic<int> all{0};
        for (std::uint32_t first = 0; first < work.copy().units; first += 128) {
          warp::run([&] {
            const GpuTile tile{work.copy(),
                               work.task.dims.data(),
                               first + threadIdx.x,
                               std::min(work.copy().units, first + 128),
                               work.src,
                               work.dst};
            all += reduce_tile_of(dtype, combine, tile, stamped, 7, forever) ? 1 : 0;
          });
        }
        CHECK(all == 2 * 32);
        CHECK((got == expected));
      }
    }
  }
}

TEST_CASE("warps: a reduction out of lines that never come is given up") {
  std::vector<std::byte> ring(2 * kStampedLine);
  std::vector<double> to(60, 1.5);
  const auto before = to;
  StridedCopy whole;
  whole.block = 480;
  const Work work(whole, at(ring, true), {reinterpret_cast<std::byte*>(to.data()), 0, 1, false, false, nullptr}, 8);
  std::atomic<int> came{0}, looks{0};
  warp::run([&] {
    const GpuTile tile{work.copy(), work.task.dims.data(), threadIdx.x, 60, work.src, work.dst};
    const auto few = [&] { return ++looks < 400; };
    came += reduce_tile_of(DType::f64, ReduceOp::max, tile, true, 3, few) ? 1 : 0;
  });
  CHECK(came == 0);
  CHECK(to == before);
}
