// Putting a task of a GPU program together: see gpu_task.hpp.
#include "engines/gpu_task.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tasuki {

namespace {

// So much is worth another thread block: bytes where they lie together, units where each is a memory access of its own.
constexpr std::int64_t kBytesPerBlock = 8 << 10;
constexpr std::int64_t kUnitsPerBlock = 256;
constexpr std::int64_t kMostUnits = std::int64_t{1} << 30;
GpuDim dim_of(std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
  GpuDim dim;
  dim.count = static_cast<std::uint32_t>(count);
  const auto log = static_cast<std::uint32_t>(std::bit_width(dim.count - 1));  // of the next power of two
  dim.shift = 31 + log;
  dim.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << dim.shift) + dim.count - 1) / dim.count);
  dim.src_stride = src_stride;
  dim.dst_stride = dst_stride;
  return dim;
}

// The widest units, of 16 bytes or less, that are whole everywhere.
std::int64_t unit_of(const StridedCopy& copy, const Located& src, const Located& dst) {
  std::int64_t unit = 16;
  const auto fits = [&](std::int64_t value) {
    while (value % unit != 0) unit /= 2;
  };
  for (const Located* where : {&src, &dst}) {
    fits(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(where->base) % 16));
    fits(where->copies > 1 ? std::abs(where->stride) : 0);
  }
  fits(copy.src_offset);
  fits(copy.dst_offset);
  fits(copy.block);
  for (int d = 0; d < copy.ndims; ++d) {
    fits(std::abs(copy.dims[d].src_stride));
    fits(std::abs(copy.dims[d].dst_stride));
  }
  return unit;
}

// Two of half the size.
std::pair<StridedCopy, StridedCopy> halves(const StridedCopy& copy) {
  StridedCopy first = copy;
  StridedCopy second = copy;
  const auto end = copy.dims.begin() + copy.ndims;
  const auto d = std::find_if(copy.dims.begin(), end, [](const auto& dim) { return dim.count > 1; });
  if (d == end) {
    first.block = copy.block / 32 * 16;
    second.block = copy.block - first.block;
    second.src_offset += first.block;
    second.dst_offset += first.block;
  } else {
    const auto i = static_cast<std::size_t>(d - copy.dims.begin());
    first.dims[i].count /= 2;
    second.dims[i].count -= first.dims[i].count;
    second.src_offset += first.dims[i].count * d->src_stride;
    second.dst_offset += first.dims[i].count * d->dst_stride;
  }
  return {first, second};
}

}  // namespace

std::int64_t TaskDraft::blocks() const {
  return std::min(most, std::max({std::int64_t{1}, bytes / kBytesPerBlock, units / kUnitsPerBlock}));
}

std::int64_t TaskDraft::add_copy(const StridedCopy& copy, const Located& src, const Located& dst,
                                 std::int64_t element) {
  const std::int64_t unit = element > 0 ? element : unit_of(copy, src, dst);
  const std::int64_t units_of_it = copy.bytes() / unit;
  if (units_of_it > kMostUnits) {  // too large for the kernel's numbers
    const auto [first, second] = halves(copy);
    return add_copy(first, src, dst, element) + add_copy(second, src, dst, element);
  }
  if (units_of_it == 0) return 0;
  const std::int64_t src_scale = src.stamped ? 2 : 1;
  const std::int64_t dst_scale = dst.stamped ? 2 : 1;
  GpuCopy out;
  out.src_offset = copy.src_offset * src_scale;
  out.dst_offset = copy.dst_offset * dst_scale;
  out.units = static_cast<std::uint32_t>(units_of_it);
  out.log_unit = static_cast<std::int16_t>(std::bit_width(static_cast<std::uint64_t>(unit)) - 1);
  out.first_dim = static_cast<std::int32_t>(dims.size());
  const auto add_dim = [&](std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
    dims.push_back(dim_of(count, src_stride * src_scale, dst_stride * dst_scale));
  };
  if (copy.block > unit || copy.ndims == 0) add_dim(copy.block / unit, unit, unit);
  for (int d = copy.ndims - 1; d >= 0; --d) {
    add_dim(copy.dims[d].count, copy.dims[d].src_stride, copy.dims[d].dst_stride);
  }
  out.dims = static_cast<std::int16_t>(static_cast<std::int32_t>(dims.size()) - out.first_dim);
  copies.push_back(out);
  return units_of_it;
}

void TaskDraft::add_lane(const TaskDraft& lane) {
  if (lane.steps.empty()) return;
  TaskDraft one = lane;
  one.ends = {static_cast<std::int32_t>(lane.steps.size())};
  add_lanes(one);
}

void TaskDraft::add_lanes(const TaskDraft& other) {
  for (const std::int32_t end : other.ends) ends.push_back(static_cast<std::int32_t>(steps.size()) + end);
  for (GpuStep step : other.steps) {
    step.first_dep += static_cast<std::int32_t>(deps.size());
    steps.push_back(step);
  }
  deps.insert(deps.end(), other.deps.begin(), other.deps.end());
}

void TaskDraft::fill_warp() {
  while (ends.size() % 32 != 0) ends.push_back(static_cast<std::int32_t>(steps.size()));
}

// Tiles of few units if there are few: one for each thread, all in flight at once. Else of as many as a thread can
// keep in flight.
void TaskDraft::cut(std::int64_t blocks_of_it) {
  const auto tile =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(units / (kGpuThreads * blocks_of_it), 1, kTileUnits));
  for (GpuStep& step : steps) {
    step.tile_units = tile;
    for (std::int32_t k = step.first_copy; k < step.first_copy + step.copies; ++k) {
      GpuCopy& copy = copies[static_cast<std::size_t>(k)];
      copy.first_tile = step.tiles;
      step.tiles += (copy.units + 32 * tile - 1) / (32 * tile);
    }
  }
}

void TaskDraft::write(std::vector<std::byte>& to) const {
  const std::size_t begin = to.size();
  to.resize(begin + (sizeof(GpuTaskHeader) + 15) / 16 * 16);
  const auto put = [&](const auto& values) {
    const std::size_t at = to.size();
    const std::size_t size = values.size() * sizeof(values[0]);
    to.resize(at + (size + 15) / 16 * 16);
    if (size > 0) std::memcpy(to.data() + at, values.data(), size);
    return static_cast<std::int32_t>(at - begin);
  };
  GpuTaskHeader header;
  header.lanes = static_cast<std::int32_t>(ends.size());
  header.ends = put(ends);
  header.steps = put(steps);
  header.copies = put(copies);
  header.dims = put(dims);
  header.deps = put(deps);
  std::memcpy(to.data() + begin, &header, sizeof header);
}

}  // namespace tasuki
