// A lowered GPU program as the kernel reads it, and its moves carried out on the host.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "engines/gpu/program.hpp"

namespace gpu_view {

using namespace tasuki;

/// A task's lists.
struct View {
  const std::byte* at;
  GpuTaskHeader header;

  View(const GpuProgram& program, const GpuTask& task) : at(program.bytes.data() + task.offset) {
    std::memcpy(&header, at, sizeof header);
  }
  template <class T>
  T get(std::int32_t offset, std::int32_t index) const {
    T value;
    std::memcpy(&value, at + offset + static_cast<std::size_t>(index) * sizeof(T), sizeof value);
    return value;
  }
  /// The steps of its lanes.
  std::vector<std::vector<GpuStep>> lanes() const {
    std::vector<std::vector<GpuStep>> all;
    std::int32_t s = 0;
    for (std::int32_t lane = 0; lane < header.lanes; ++lane) {
      all.emplace_back();
      for (; s < get<std::int32_t>(header.ends, lane); ++s) all.back().push_back(get<GpuStep>(header.steps, s));
    }
    return all;
  }
  std::vector<std::int32_t> deps(const GpuStep& step) const {
    std::vector<std::int32_t> all;
    for (std::int32_t d = 0; d < step.deps; ++d) all.push_back(get<std::int32_t>(header.deps, step.first_dep + d));
    return all;
  }
};

/// Where byte `byte` of word `word` is in stamped lines: words below 96 of a line whole in the thread's 16 bytes, those
/// after them in the last three of them.
inline std::size_t in_lines(std::size_t word, std::size_t byte) {
  const std::size_t line = word / kLineWords * 512;
  const std::size_t w = word % kLineWords;
  if (w < 96) return line + w % 32 * 16 + w / 32 * 4 + byte;
  const std::size_t last = 4 * (w - 96) + byte;
  return line + last / 3 * 16 + 12 + last % 3;
}

inline void move_word(const GpuStep& step, const std::byte* src, std::byte* dst, std::size_t word) {
  for (std::size_t i = 0; i < 4; ++i) {
    if (step.stamped == kStampedTarget) {
      dst[in_lines(word, i)] = src[i];
    } else {
      dst[i] = src[in_lines(word, i)];
    }
  }
}

inline void move_unit(const GpuStep& step, const std::byte* src, std::byte* dst, std::size_t bytes) {
  if (step.verb == Verb::reduce) {
    REQUIRE(static_cast<std::int64_t>(bytes) == size_of(step.dtype));
    StridedCopy one;
    one.block = static_cast<std::int64_t>(bytes);
    return select_reduce(one, step.dtype, step.op)(one, src, dst);
  }
  std::memcpy(dst, src, bytes);
}

/// Moves what the tiles [from, to) of a step and its followers name, one unit after the other; returns how many units.
inline std::int64_t follow(const View& view, const GpuStep& deal, std::uint32_t from, std::uint32_t to) {
  std::int64_t moved = 0;
  const std::int32_t first = view.get<GpuCopy>(view.header.copies, deal.first_copy).step;
  const auto last = view.get<GpuStep>(view.header.steps, first + deal.followers);
  for (std::uint32_t tile = from; tile < to; ++tile) {
    std::int32_t k = last.first_copy + last.copies - 1;
    while (view.get<GpuCopy>(view.header.copies, k).first_tile > tile) --k;
    const auto copy = view.get<GpuCopy>(view.header.copies, k);
    const auto step = view.get<GpuStep>(view.header.steps, copy.step);
    const std::uint32_t units = deal.tile_rows * copy.row_units;
    const std::uint32_t begin = (tile - copy.first_tile) * units;
    for (std::uint32_t unit = begin; unit < begin + units && unit < copy.units; ++unit) {
      std::int64_t src = copy.src_offset;
      std::int64_t dst = copy.dst_offset;
      std::uint32_t rest = unit;
      const std::int64_t scale = step.verb == Verb::reduce ? 1 : std::int64_t{1} << copy.log_unit;
      for (int d = 0; d < copy.dims; ++d) {
        const auto dim = view.get<GpuDim>(view.header.dims, copy.first_dim + d);
        const auto next = static_cast<std::uint32_t>((std::uint64_t{rest} * dim.magic) >> (32 + dim.shift));
        const std::uint32_t index = d + 1 < copy.dims ? rest - next * dim.count : rest;
        src += static_cast<std::int64_t>(index) * dim.src_stride * scale;
        dst += static_cast<std::int64_t>(index) * dim.dst_stride * scale;
        rest = next;
      }
      if (step.stamped != 0) {
        REQUIRE(copy.log_unit == 2);
        move_word(step, step.src.base + src, step.dst.base + dst, unit);
      } else {
        move_unit(step, step.src.base + src, step.dst.base + dst, std::size_t{1} << copy.log_unit);
      }
      ++moved;
    }
  }
  return moved;
}

inline std::int64_t follow(const View& view, const GpuStep& deal) {
  return follow(view, deal, 0, deal.tiles);
}

}  // namespace gpu_view
