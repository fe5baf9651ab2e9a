// A lowered GPU program as the kernel reads it, and its moves carried out on the host.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "engines/gpu_program.hpp"

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

/// Stamped memory has every word of 4 bytes at twice its offset.
inline void move_unit(const GpuStep& step, const std::byte* src, std::byte* dst, std::size_t bytes) {
  if (step.verb == Verb::reduce) {
    REQUIRE(step.dtype == DType::f64);
    double sum[2];
    std::memcpy(&sum[0], src, sizeof(double));
    std::memcpy(&sum[1], dst, sizeof(double));
    sum[1] += sum[0];
    std::memcpy(dst, &sum[1], sizeof(double));
    return;
  }
  if (step.stamped == 0) {
    std::memcpy(dst, src, bytes);
    return;
  }
  REQUIRE(bytes % 4 == 0);
  for (std::size_t i = 0; i < bytes; i += 4) {
    std::memcpy(dst + (step.stamped == kStampedTarget ? 2 * i : i), src + (step.stamped == kStampedSource ? 2 * i : i),
                4);
  }
}

/// Moves what the step's tiles name, one unit after the other; returns how many units.
inline std::int64_t follow(const View& view, const GpuStep& step) {
  std::int64_t moved = 0;
  for (std::uint32_t tile = 0; tile < step.tiles; ++tile) {
    std::int32_t k = step.first_copy + step.copies - 1;
    while (view.get<GpuCopy>(view.header.copies, k).first_tile > tile) --k;
    const auto copy = view.get<GpuCopy>(view.header.copies, k);
    const std::uint32_t begin = (tile - copy.first_tile) * 32 * step.tile_units;
    for (std::uint32_t unit = begin; unit < begin + 32 * step.tile_units && unit < copy.units; ++unit) {
      std::int64_t src = copy.src_offset;
      std::int64_t dst = copy.dst_offset;
      std::uint32_t rest = unit;
      for (int d = 0; d < copy.dims; ++d) {
        const auto dim = view.get<GpuDim>(view.header.dims, copy.first_dim + d);
        const auto next = static_cast<std::uint32_t>((std::uint64_t{rest} * dim.magic) >> dim.shift);
        const std::uint32_t index = d + 1 < copy.dims ? rest - next * dim.count : rest;
        src += index * dim.src_stride;
        dst += index * dim.dst_stride;
        rest = next;
      }
      move_unit(step, step.src.base + src, step.dst.base + dst, std::size_t{1} << copy.log_unit);
      ++moved;
    }
  }
  return moved;
}

}  // namespace gpu_view
