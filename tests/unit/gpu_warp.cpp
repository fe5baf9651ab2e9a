// The code that a GPU's warps run, run on a processor: tiles of strided copies, LL lines, additions.
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
  if (copy.ndims > 0 && random() % 2 == 0) {  // the outermost steps in any order
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i < copy.dims[0].count; ++i) offsets.push_back(i * copy.dims[0].src_stride);
    std::shuffle(offsets.begin(), offsets.end(), random);
    copy.src_list = OffsetList(offsets);
    copy.dims[0].src_stride = 0;
  }
  return copy;
}

StridedCopy turned(StridedCopy copy) {
  std::swap(copy.src_offset, copy.dst_offset);
  std::swap(copy.src_list, copy.dst_list);
  for (int d = 0; d < copy.ndims; ++d) std::swap(copy.dims[d].src_stride, copy.dims[d].dst_stride);
  return copy;
}

// Packed on the side of the destination, from the beginning of the given line on.
StridedCopy packed(StridedCopy copy, std::int64_t line) {
  copy.dst_offset = line * kLLLineData;
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

Located at(std::vector<std::byte>& bytes, bool ll = false) {
  return {bytes.data(), 0, 1, false, ll, nullptr};
}

const auto forever = [] { return true; };

template <int Most>
void fill(const Work& work, std::uint32_t flag) {
  for (std::uint32_t first = 0; first < work.lines(); first += Most) {
    warp::run([&] { fill_lines<Most>(work.tile(first, Most), flag); });
  }
}

template <int Most, class More>
bool take(const Work& work, std::uint32_t flag, const More& more) {
  std::atomic<int> came{0};
  std::uint32_t tiles = 0;
  for (std::uint32_t first = 0; first < work.lines(); first += Most, ++tiles) {
    warp::run([&] { came += unpack_lines<Most>(work.tile(first, Most), flag, more) ? 1 : 0; });
  }
  CHECK((came == 0 || came == static_cast<int>(32 * tiles)));  // all threads of a warp say the same
  return came > 0;
}

}  // namespace

TEST_CASE("warps: what goes into LL lines comes out of them, whatever the epoch, and nothing else is touched") {
  std::mt19937 random(21);
  for (int round = 0; round < 40; ++round) {
    const StridedCopy copy = packed(random_copy(random), static_cast<std::int64_t>(random() % 3));
    auto from = random_bytes(random, kField);
    auto to = random_bytes(random, kField);
    std::vector<std::byte> ring(static_cast<std::size_t>(copy.bytes() / kLLLineData + 4) * kLLLineBytes);
    const auto flag = static_cast<std::uint32_t>(random());
    const Work put(copy, at(from), at(ring, true));
    const Work get(turned(copy), at(ring, true), at(to));
    if (round % 2 == 0) {
      fill<1>(put, flag);
    } else {
      fill<kTileRows>(put, flag);
    }
    auto expected = to;
    for (std::uint32_t n = 0; n < put.copy().units; ++n) {
      std::int64_t offset = copy.src_offset;
      std::int64_t rest = n;
      offset += rest % (copy.block / 4) * 4;
      rest /= copy.block / 4;
      for (int d = copy.ndims - 1; d >= 0; --d) {
        const std::int64_t step = rest % copy.dims[d].count;
        offset += d == 0 && copy.listed() ? copy.src_list[step] : step * copy.dims[d].src_stride;
        rest /= copy.dims[d].count;
      }
      for (std::size_t byte = 0; byte < 4; ++byte) {
        const auto place = static_cast<std::size_t>(offset) + byte;
        expected[place] = from[place];
        const auto line = static_cast<std::size_t>(put.copy().dst_offset);
        REQUIRE(ring[line + gpu_view::in_lines(n, byte)] == from[place]);
      }
    }
    if (round % 3 == 0) {
      CHECK(take<1>(get, flag, forever));
    } else {
      CHECK(take<kTileRows>(get, flag, forever));
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
  std::vector<std::byte> ring(6 * kLLLineBytes);
  for (std::uint32_t epoch = 254; epoch < 260; ++epoch) {
    for (auto& byte : from) byte = static_cast<std::byte>(random());
    const Work put(copy, at(from), at(ring, true));
    const Work get(copy, at(ring, true), at(to));
    std::atomic<int> looks{0};
    const auto few = [&] { return ++looks < 400; };
    CHECK(!take<kTileRows>(get, epoch, few));  // the last epoch's are there
    CHECK((to != from));
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
    if (round % 3 == 0) copy = turned(copy);
    const Work work(copy, {aligned.data(), 0, 1, false, false, nullptr},
                    {aligned.data() + kField, 0, 1, false, false, nullptr});
    std::fill(aligned.begin() + kField, aligned.end(), std::byte{});
    const std::uint32_t rows = round % 2 == 0 ? 1 : kTileRows;
    const std::uint32_t step = work.copy().row_units * rows;
    for (std::uint32_t first = 0; first < work.copy().units; first += step) {
      warp::run([&] {
        const std::uint32_t end = std::min(work.copy().units, first + step);
        move_units(GpuTile{work.copy(), work.task.dims.data(), first + threadIdx.x, end, work.src, work.dst}, rows);
      });
    }
    select_copy(copy)(copy, from.data(), to.data());
    CHECK(std::equal(to.begin(), to.end(), aligned.begin() + kField));
  }
}

TEST_CASE("warps: rows become columns, in tiles of which any may be cut off") {
  std::mt19937 random(29);
  for (int round = 0; round < 30; ++round) {
    const std::int64_t unit = std::int64_t{4} << round % 3;
    const auto count = [&] { return static_cast<std::int64_t>(16 + random() % 30); };
    const std::int64_t down = count();
    const std::int64_t across = count();
    const std::int64_t planes = round % 2 == 0 ? 1 : 1 + static_cast<std::int64_t>(random() % 3);
    const std::int64_t more = round % 4 < 2 ? 1 : 2;
    StridedCopy copy;  // [more, planes, across, down] becomes [planes, down, more, across], with gaps
    copy.src_offset = unit * static_cast<std::int64_t>(random() % 5);
    copy.dst_offset = unit * static_cast<std::int64_t>(random() % 5);
    copy.block = unit;
    const std::int64_t row = unit * (down + 3);
    const std::int64_t column = unit * (across + 2);
    const std::array<StridedCopy::Dim, 4> dims{{{more, row * across * planes, column},
                                                {planes, row * across, column * more * down},
                                                {across, row, unit},
                                                {down, unit, column * more}}};
    copy.ndims = 0;
    for (const std::size_t d :
         round % 5 == 0 ? std::array<std::size_t, 4>{3, 0, 2, 1} : std::array<std::size_t, 4>{0, 1, 2, 3})
      if (dims[d].count > 1) copy.dims[static_cast<std::size_t>(copy.ndims++)] = dims[d];
    const auto room = static_cast<std::size_t>(unit * (down + 3) * (across + 3) * planes * more + 16 * unit);
    alignas(16) static std::array<std::byte, 512 << 10> aligned;
    REQUIRE(2 * room < aligned.size());
    auto from = random_bytes(random, room);
    auto to = random_bytes(random, room);
    std::byte* const src = aligned.data();
    std::byte* const dst = src + (room + 15) / 16 * 16;
    std::copy(from.begin(), from.end(), src);
    std::copy(to.begin(), to.end(), dst);
    Work work(copy, {src, 0, 1, false, false, nullptr}, {dst, 0, 1, false, false, nullptr});
    REQUIRE(work.copy().turned == 1);
    work.task.ends = {1};
    work.task.steps[0].verb = Verb::copy;
    work.task.cut(1);
    for (std::uint32_t tile = 0; tile < work.task.steps[0].tiles; ++tile)
      warp::run([&] { turn_tile(work.copy(), work.task.dims.data(), tile, src, dst); });
    select_copy(copy)(copy, from.data(), to.data());
    CAPTURE(round);
    CHECK(std::equal(to.begin(), to.end(), dst));
  }
}

TEST_CASE("copies that turn nothing, or little, are moved in rows") {
  const auto turned_of = [](std::int64_t block, std::int64_t down, std::int64_t across, std::int64_t offset) {
    StridedCopy copy;
    copy.block = block;
    copy.src_offset = offset;
    copy.ndims = 2;
    copy.dims[0] = {across, 1000 * block, block};
    copy.dims[1] = {down, block, 1000 * block};
    TaskDraft task;
    task.add_copy(copy, Located{}, Located{}, 0);
    REQUIRE(task.copies.size() == 1);
    return task.copies[0].turned;
  };
  CHECK(turned_of(8, 16, 16, 0) == 1);
  CHECK(turned_of(8, 15, 100, 0) == 0);
  CHECK(turned_of(8, 100, 15, 0) == 0);
  CHECK(turned_of(8, 100, 100, 4) == 0);  // units of 4 bytes
  CHECK(turned_of(2, 100, 100, 0) == 0);
  CHECK(turned_of(32, 100, 100, 0) == 0);
}

namespace {

// The warps of a step that combines what lies at `from`, packed or in LL lines, with what is at `to`.
struct Combining {
  TaskDraft task;
  std::vector<const std::byte*> from;
  std::vector<bool> ll;
  std::byte* to = nullptr;
  std::vector<std::vector<std::byte>> rings = {};  // LL lines in which the result goes on

  void add(const StridedCopy& copy, const Located& src, const Located& dst, std::int64_t form) {
    task.add_copy(copy, src, dst, form);
    from.push_back(src.base);
    ll.push_back(src.ll);
    to = dst.base;
  }

  template <class More>
  bool run(DType type, ReduceOp op, bool begins, bool by_lines, std::uint32_t rows, std::uint32_t flag,
           const More& more) {
    const Combination c{type, op, begins, static_cast<int>(from.size()) - 1, static_cast<int>(rings.size())};
    const auto forward_to = [&](int k) { return rings[static_cast<std::size_t>(k)].data(); };
    const auto operand = [&](int k) {
      const auto i = static_cast<std::size_t>(k);
      const GpuCopy& copy = task.copies[i];
      return Operand{copy, task.dims.data() + copy.first_dim, from[i], ll[i]};
    };
    const std::uint32_t all = (task.copies[0].units + task.copies[0].row_units - 1) / task.copies[0].row_units;
    std::atomic<std::uint32_t> came{0};
    std::uint32_t tiles = 0;
    for (std::uint32_t first = 0; first < all; first += rows, ++tiles) {
      warp::run([&] {
        const auto tile = [&](auto add) {
          return combine_tile(c, add, by_lines, first, rows, to, operand, forward_to, flag, more);
        };
        came += with_adder(type, op, tile) ? 1 : 0;
      });
    }
    CHECK((came == 0 || came == 32 * tiles));
    return came > 0;
  }
};

// Small numbers: no NaNs, whose bits may differ.
void fill_numbers(DType type, std::mt19937& random, std::vector<std::byte>& memory, std::size_t begin) {
  const bool wide = type == DType::f64 || type == DType::c128;
  if (!wide && type != DType::f32 && type != DType::c64) return;
  for (std::size_t at = begin; at + 8 <= memory.size(); at += wide ? 8 : 4) {
    const double value = static_cast<double>(random() % 1000) / 7 - 70;
    const auto narrow = static_cast<float>(value);
    std::memcpy(&memory[at], wide ? static_cast<const void*>(&value) : &narrow, wide ? 8 : 4);
  }
}

}  // namespace

TEST_CASE("warps: reductions of all types and operators, out of packed memory and from anywhere") {
  std::mt19937 random(24);
  constexpr std::int64_t kCount = 131;
  for (int type = 1; type <= static_cast<int>(DType::i64_i64); ++type) {
    for (int op = 0; op <= static_cast<int>(ReduceOp::negate); ++op) {
      const auto dtype = static_cast<DType>(type);
      const auto combine = static_cast<ReduceOp>(op);
      if (combine == ReduceOp::own) continue;  // runs on no GPU
      if (combine == ReduceOp::negate ? !has_sign(dtype) : !defined(combine, dtype)) continue;
      CAPTURE(to_string(dtype));
      CAPTURE(to_string(combine));
      const std::int64_t size = size_of(dtype);
      const std::int64_t shift = op % 2;  // every other operator finds elements that lie anywhere
      StridedCopy each;
      each.block = size;
      each.ndims = 1;
      each.dims[0] = {kCount, size, 2 * size};
      each.dst_offset = size;
      const auto bytes = static_cast<std::size_t>(kCount * size);
      auto from = random_bytes(random, bytes + 1);
      std::vector<std::byte> got = random_bytes(random, 2 * bytes + 17);
      fill_numbers(dtype, random, from, static_cast<std::size_t>(shift));
      fill_numbers(dtype, random, got, static_cast<std::size_t>(shift));
      std::vector<std::byte> expected = got;
      select_reduce(each, dtype, combine)(each, from.data() + shift, expected.data() + shift);
      Combining warps;
      warps.add(each, {from.data() + shift, 0, 1, false, false, nullptr},
                {got.data() + shift, 0, 1, false, false, nullptr}, size);
      CHECK(warps.run(dtype, combine, false, false, kTileRows, 0, forever));
      CHECK((got == expected));
    }
  }
}

TEST_CASE("warps: several operands, out of lines, packed memory or both, into what is there or over it") {
  std::mt19937 random(25);
  alignas(16) static std::array<std::byte, 5 * 8192> memory;  // the destination, then packed operands
  for (int type = 1; type <= static_cast<int>(DType::i64_i64); ++type) {
    for (int round = 0; round < 6; ++round) {
      const auto dtype = static_cast<DType>(type);
      auto combine = static_cast<ReduceOp>(random() % 12);
      while (!defined(combine, dtype)) combine = static_cast<ReduceOp>(random() % 12);
      CAPTURE(to_string(dtype));
      CAPTURE(to_string(combine));
      CAPTURE(round);
      const bool lines = round % 3 != 0;
      const bool wide = round == 3;
      const bool begins = random() % 2 == 0;
      StridedCopy copy;
      copy.block = 16 * static_cast<std::int64_t>(1 + random() % (round == 1 ? 20 : 300));
      if (!wide && size_of(dtype) == 4) copy.block += 4;
      std::vector<std::byte> fresh = random_bytes(random, memory.size());
      fill_numbers(dtype, random, fresh, 0);
      std::copy(fresh.begin(), fresh.end(), memory.begin());
      std::vector<std::byte> expected(memory.begin(), memory.begin() + 8192);
      const auto place = [&](std::size_t i) { return Located{memory.data() + 8192 * i, 0, 1, false, false, nullptr}; };
      std::vector<std::vector<std::byte>> rings;
      Combining warps;
      for (std::size_t k = 1; k <= 1 + static_cast<std::size_t>(round) % 4; ++k) {
        const bool ll = lines && (k == 1 || random() % 2 == 0);
        const bool copies = begins && k == 1;
        const auto f = copies ? select_copy(copy) : select_reduce(copy, dtype, combine);
        f(copy, place(k).base, expected.data());
        const std::int64_t form = lines ? kByLines : wide ? kByWide : size_of(dtype);
        if (ll) {
          rings.emplace_back(static_cast<std::size_t>(copy.block / kLLLineData + 2) * kLLLineBytes);
          ::fill<kTileRows>(Work(copy, place(k), at(rings.back(), true)), 9);
          const Located ring{rings.back().data(), 0, 1, false, true, nullptr};
          warps.add(copy, ring, place(0), form);
        } else {
          warps.add(copy, place(k), place(0), form);
        }
      }
      const auto ring_bytes = static_cast<std::size_t>(copy.block / kLLLineData + 2) * kLLLineBytes;
      if (lines) warps.rings.assign(random() % 3, std::vector<std::byte>(ring_bytes));
      CHECK(warps.run(dtype, combine, begins, lines, round % 2 == 0 ? 1 : kTileRows, 9, forever));
      CHECK(std::equal(expected.begin(), expected.end(), memory.begin()));
      for (auto& ring : warps.rings) {  // where the next rank takes it
        std::vector<std::byte> taken(static_cast<std::size_t>(copy.block) + 16);
        const Located line{ring.data(), 0, 1, false, true, nullptr};
        CHECK(take<kTileRows>(Work(copy, line, at(taken)), 9, forever));
        CHECK(std::equal(expected.begin(), expected.begin() + copy.block, taken.begin()));
      }
      if (!wide) continue;
      // The same once more, as steps whose operands are contiguous do it.
      std::copy(fresh.begin(), fresh.end(), memory.begin());
      const auto value = [&](int k) { return memory.data() + 8192 * (k + (begins ? 1 : 0)); };
      const auto units = static_cast<std::uint32_t>(copy.block / 16);
      constexpr std::uint32_t kTile = 32 * kTileRows;
      std::vector<std::byte> sent(static_cast<std::size_t>(copy.block));
      std::byte* const also = round % 3 == 0 ? sent.data() : nullptr;
      with_adder(dtype, combine, [&](auto add) {
        for (std::uint32_t unit = 0; unit < (units + kTile - 1) / kTile * kTile; ++unit) {
          if (unit % kTile >= 32) continue;
          const std::uint32_t end = std::min(units, unit / kTile * kTile + kTile);
          combine_flat(add, unit, end, value(0), value(1), memory.data(), also, begins ? 2 : 3,
                       [&](int k) { return value(2 + k); });
        }
        return true;
      });
      CHECK(std::equal(expected.begin(), expected.end(), memory.begin()));
      if (also != nullptr) CHECK(std::equal(sent.begin(), sent.begin() + units * 16, memory.begin()));
    }
  }
}

TEST_CASE("warps: a reduction out of lines that never come is given up") {
  std::vector<std::byte> ring(2 * kLLLineBytes);
  std::vector<double> to(60, 1.5);
  const auto before = to;
  StridedCopy whole;
  whole.block = 480;
  Combining warps;
  warps.add(whole, at(ring, true), {reinterpret_cast<std::byte*>(to.data()), 0, 1, false, false, nullptr}, kByLines);
  std::atomic<int> looks{0};
  CHECK(!warps.run(DType::f64, ReduceOp::max, false, true, 1, 3, [&] { return ++looks < 400; }));
  CHECK(to == before);
}
