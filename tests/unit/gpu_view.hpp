// A lowered GPU program as the kernel reads it, and its moves carried out on the host.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/gpu/row_places.hpp"
#include "transports/channel.hpp"

namespace gpu_view {

using namespace tasuki;

/// A message that a thread carries: one word says that it has ended, the next one that it is asked for.
class WordChannel final : public ThreadChannel {
 public:
  explicit WordChannel(std::uint64_t* words) : words_(words) {}
  const std::uint64_t* ended() const override { return words_; }
  std::uint64_t* asked() const override { return words_ + 1; }
  std::string failure() const override { return {}; }

 private:
  std::uint64_t* words_;
};

/// Buffers are where `at` says, every counter is a word of its own.
inline Program bound(Plan plan, const std::function<std::byte*(const Buffer&)>& at) {
  static std::uint64_t counters[16];
  std::size_t next = 0;
  Program program;
  program.plan = std::move(plan);
  program.channels.resize(program.plan.commands.size());
  for (const Buffer& buffer : program.plan.buffers) {
    const bool counts = buffer.role == Role::signal;
    program.where.push_back({counts ? reinterpret_cast<std::byte*>(&counters[next++ % 16]) : at(buffer), 0, 1, false,
                             buffer.home == Home::ll, nullptr});
  }
  return program;
}
/// All in the same memory.
inline Program bound(Plan plan, std::byte* memory) {
  return bound(std::move(plan), [memory](const Buffer&) { return memory; });
}

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

/// Where byte `byte` of word `word` is in LL lines: words below 96 of a line whole in the thread's 16 bytes, those
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
    if (step.ll_side == kLLTarget) {
      dst[in_lines(word, i)] = src[i];
    } else {
      dst[i] = src[in_lines(word, i)];
    }
  }
}

/// Where a buffer is in an epoch.
inline std::byte* base_of(const GpuPlace& place, std::uint64_t epoch) {
  const std::uint64_t copy = place.takes_turns != 0 ? (epoch - 1) % place.copies : 0;
  return place.base + static_cast<std::int64_t>(copy) * place.stride;
}

/// Offsets of a unit on both sides.
inline std::pair<std::int64_t, std::int64_t> offsets_of(const View& view, const GpuCopy& copy, std::uint32_t unit,
                                                        std::int64_t scale) {
  std::pair<std::int64_t, std::int64_t> at{copy.src_offset, copy.dst_offset};
  std::uint32_t rest = unit;
  for (int d = 0; d < copy.dims; ++d) {
    const auto dim = view.get<GpuDim>(view.header.dims, copy.first_dim + d);
    const auto next = static_cast<std::uint32_t>((std::uint64_t{rest} * dim.magic) >> (32 + dim.shift));
    const std::uint32_t index = d + 1 < copy.dims ? rest - next * dim.count : rest;
    at.first += static_cast<std::int64_t>(index) * dim.src_stride * scale;
    at.second += static_cast<std::int64_t>(index) * dim.dst_stride * scale;
    rest = d + 1 < copy.dims ? next : index;
  }
  const UnitLists lists =
      lists_of(copy, [&](std::int32_t n) { return view.get<GpuDim>(view.header.dims, copy.first_dim + n); });
  if (!lists.src.empty()) at.first += lists.src[rest] * scale;
  if (!lists.dst.empty()) at.second += lists.dst[rest] * scale;
  return at;
}

/// Combines the units [begin, end) of all operands of step number `s`, so many at a time that they are whole elements.
inline void combine(const View& view, std::int32_t s, const GpuCopy& copy, std::uint32_t begin, std::uint32_t end,
                    std::uint64_t epoch) {
  const auto step = view.get<GpuStep>(view.header.steps, s);
  const bool only_goes_on = step.joined == step.sends && step.begins != 0;
  const std::int64_t size = only_goes_on ? 4 : size_of(step.dtype);
  const std::int64_t unit = step.by_lines != 0 ? 4 : std::int64_t{1} << copy.log_unit;
  const std::int64_t scale = step.by_lines != 0 ? 4 : copy.wide != 0 ? 16 : 1;
  if (step.by_lines == 0 && copy.wide == 0) REQUIRE(unit == size);
  const auto each = static_cast<std::uint32_t>(std::max(unit, size) / unit);
  for (std::uint32_t first = begin; first < end; first += each) {
    std::vector<std::byte> here(static_cast<std::size_t>(each * unit));
    std::vector<std::byte> there(here.size());
    const auto piece = [&](std::vector<std::byte>& bytes, std::uint32_t i) {
      return bytes.data() + static_cast<std::int64_t>(i) * unit;
    };
    const auto to = [&](std::uint32_t i) {
      return base_of(step.dst, epoch) + offsets_of(view, copy, first + i, scale).second;
    };
    for (std::uint32_t i = 0; i < each; ++i) std::memcpy(piece(here, i), to(i), static_cast<std::size_t>(unit));
    for (std::int32_t k = 0; k <= step.joined - step.sends; ++k) {
      const auto operand = view.get<GpuStep>(view.header.steps, s + k);
      const auto its = k == 0 ? copy : view.get<GpuCopy>(view.header.copies, operand.first_copy);
      for (std::uint32_t i = 0; i < each; ++i) {
        const std::byte* src = base_of(operand.src, epoch);
        if (operand.ll_side == kLLSource) {
          for (std::size_t b = 0; b < 4; ++b) piece(there, i)[b] = src[its.src_offset + in_lines(first + i, b)];
        } else {
          std::memcpy(piece(there, i), src + offsets_of(view, its, first + i, scale).first,
                      static_cast<std::size_t>(unit));
        }
      }
      StridedCopy one;
      one.block = static_cast<std::int64_t>(here.size());
      const bool begins = k == 0 && step.begins != 0;
      begins ? void(here = there) : void(select_reduce(one, step.dtype, step.op)(one, there.data(), here.data()));
    }
    for (std::uint32_t i = 0; i < each; ++i) std::memcpy(to(i), piece(here, i), static_cast<std::size_t>(unit));
    for (std::int32_t k = step.joined - step.sends + 1; k <= step.joined; ++k) {
      const auto put = view.get<GpuStep>(view.header.steps, s + k);
      const auto its = view.get<GpuCopy>(view.header.copies, put.first_copy);
      for (std::uint32_t i = 0; i < each; ++i) {
        std::byte* const also = base_of(put.dst, epoch);
        if (put.ll_side == kLLTarget) {
          for (std::size_t b = 0; b < 4; ++b) also[its.dst_offset + in_lines(first + i, b)] = piece(here, i)[b];
        } else {
          std::memcpy(also + offsets_of(view, its, first + i, scale).second, piece(here, i),
                      static_cast<std::size_t>(unit));
        }
      }
    }
  }
}

/// The units of a tile of a copy in rows: the next one after another. Of one that turns, a rectangle of the first two
/// dimensions.
inline std::vector<std::uint32_t> units_of(const View& view, const GpuStep& deal, const GpuCopy& copy,
                                           std::uint32_t tile) {
  std::vector<std::uint32_t> units;
  if (copy.turned == 0) {
    const std::uint32_t each = deal.tile_rows * copy.row_units;
    for (std::uint32_t unit = tile * each; unit < std::min((tile + 1) * each, copy.units); ++unit)
      units.push_back(unit);
    return units;
  }
  const auto down = view.get<GpuDim>(view.header.dims, copy.first_dim);
  const auto across = view.get<GpuDim>(view.header.dims, copy.first_dim + 1);
  const std::uint32_t rows = 1u << log_turned_down(copy.log_unit);
  const std::uint32_t columns = 1u << log_turned_across(copy.log_unit);
  const std::uint32_t tiles_down = (down.count + rows - 1) / rows;
  const std::uint32_t tiles_across = (across.count + columns - 1) / columns;
  const std::uint32_t row = tile % tiles_down * rows;
  const std::uint32_t column = tile / tiles_down % tiles_across * columns;
  const std::uint32_t plane = tile / tiles_down / tiles_across;
  for (std::uint32_t a = column; a < std::min(column + columns, across.count); ++a)
    for (std::uint32_t d = row; d < std::min(row + rows, down.count); ++d)
      units.push_back((plane * across.count + a) * down.count + d);
  return units;
}

/// Moves what the tiles [from, to) of a step and its followers name, one unit after the other; returns how many units.
inline std::int64_t follow(const View& view, const GpuStep& deal, std::uint32_t from, std::uint32_t to,
                           std::uint64_t epoch = 1) {
  std::int64_t moved = 0;
  const std::int32_t first = view.get<GpuCopy>(view.header.copies, deal.first_copy).step;
  const auto last = view.get<GpuStep>(view.header.steps, first + deal.followers);
  for (std::uint32_t tile = from; tile < to; ++tile) {
    std::int32_t k = last.first_copy + last.copies - 1;
    while (view.get<GpuCopy>(view.header.copies, k).first_tile > tile) --k;
    const auto copy = view.get<GpuCopy>(view.header.copies, k);
    const auto step = view.get<GpuStep>(view.header.steps, copy.step);
    const std::vector<std::uint32_t> units = units_of(view, deal, copy, tile - copy.first_tile);
    if (step.verb == Verb::reduce) {
      combine(view, copy.step, copy, units.front(), units.back() + 1, epoch);
      moved += static_cast<std::int64_t>(units.size());
      continue;
    }
    for (const std::uint32_t unit : units) {
      const auto [src, dst] = offsets_of(view, copy, unit, std::int64_t{1} << copy.log_unit);
      const std::byte* const at = base_of(step.src, epoch) + src;
      std::byte* const to_place = base_of(step.dst, epoch) + dst;
      if (step.ll_side != 0) {
        REQUIRE(copy.log_unit == 2);
        move_word(step, at, to_place, unit);
      } else {
        std::memcpy(to_place, at, std::size_t{1} << copy.log_unit);
      }
      ++moved;
    }
  }
  return moved;
}

inline std::int64_t follow(const View& view, const GpuStep& deal, std::uint64_t epoch = 1) {
  return follow(view, deal, 0, deal.tiles, epoch);
}

}  // namespace gpu_view
