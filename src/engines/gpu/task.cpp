// Putting a task of a GPU program together: see task.hpp.
#include "engines/gpu/task.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "layout/lists.hpp"
#include "layout/transpose_kernels.hpp"
#include "plan/builder.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kAccessesPerRow = 32;  // a task is worth a block for so many accesses for each of its warps
// Measured on H200s, in ns: the loads and stores of a tile, and the share of each further access on the same SM.
constexpr double kTileTime = 450;
constexpr double kAccessTime = 1;
constexpr double kCombining = 2;   // times that of a copy: it loads another operand
constexpr std::int64_t kWord = 4;  // bytes of a unit in LL memory
constexpr std::int64_t kRun = 32;  // bytes that a GPU loads together
constexpr std::int64_t kMostUnits = std::int64_t{1} << 30;
constexpr std::uint32_t kMostTiles = std::uint32_t{1} << 30;  // dealt out together
// of extents that strides must be able to count
constexpr std::int64_t kMostExtent = std::numeric_limits<std::int32_t>::max();

// Strides are given in bytes and divided by `scale`.
GpuDim dim_of(std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride, std::int64_t scale) {
  GpuDim dim;
  dim.count = static_cast<std::uint32_t>(count);
  dim.src_stride = static_cast<std::int32_t>(src_stride / scale);
  dim.dst_stride = static_cast<std::int32_t>(dst_stride / scale);
  if (count == 1) return dim;
  const auto log = static_cast<std::uint32_t>(std::bit_width(dim.count - 1));  // of the next power of two
  dim.shift = log - 1;
  dim.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + log)) + dim.count - 1) / dim.count);
  return dim;
}

std::uint32_t rows_of(const GpuCopy& copy) {
  return (copy.units + copy.row_units - 1) / copy.row_units;
}

// Of a copy by itself, its dimensions at `dims`.
std::uint32_t tiles_of(const GpuCopy& copy, const GpuDim* dims, std::uint32_t tile_rows) {
  if (copy.turned == 0) return (rows_of(copy) + tile_rows - 1) / tile_rows;
  const auto tiles = [](std::uint32_t count, int log_side) { return ((count - 1) >> log_side) + 1; };
  return copy.units / (dims[0].count * dims[1].count) * tiles(dims[0].count, log_turned_down(copy.log_unit)) *
         tiles(dims[1].count, log_turned_across(copy.log_unit));
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The offset of a strided copy's first line in LL memory. `offset` and `stride` are those of the packed side.
std::int64_t line_of(const StridedCopy& copy, std::int64_t offset, std::int64_t StridedCopy::Dim::*stride) {
  std::int64_t packed = copy.block;
  bool in_order = offset % kLLLineData == 0;
  for (int d = copy.ndims - 1; d >= 0; --d) {
    in_order = in_order && (copy.dims[d].*stride == packed || copy.dims[d].count == 1);
    packed *= copy.dims[d].count;
  }
  if (!in_order) throw Error("a copy is not packed into LL lines in order (a defect in Tasuki)");
  return offset / kLLLineData * kLLLineBytes;
}

// How many steps are dealt out together with this one, itself counted.
std::size_t dealt_with(const GpuStep& step) {
  return 1 + static_cast<std::size_t>(step.followers) + static_cast<std::size_t>(step.joined);
}

// Whether a step moves data and no other step waits for its end.
bool only_moves(const GpuStep& step) {
  return (step.verb == Verb::copy || step.verb == Verb::put) && step.awaited == 0;
}

// Whether a step is dealt out with the one before it. What has to arrive is not with what is sent: the peer may need
// that first.
bool goes_with(const GpuStep& before, const GpuStep& step) {
  return only_moves(before) && only_moves(step) && step.deps == 0 &&
         (step.ll_side != kLLSource || before.ll_side == kLLSource);
}

// Two strided copies of half the size.
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

std::int64_t unit_of(const StridedCopy& copy, const Located& src, const Located& dst) {
  std::int64_t unit = kWide;
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
  for (const OffsetList* list : {&copy.src_list, &copy.dst_list})
    for (std::int64_t i = 0; i < list->size(); ++i) fits(std::abs((*list)[i]));
  return unit;
}

std::int64_t true_extent(const StridedCopy& copy) {
  std::int64_t src = copy.block;
  std::int64_t dst = copy.block;
  for (int d = 0; d < copy.ndims; ++d) {
    src += (copy.dims[d].count - 1) * std::abs(copy.dims[d].src_stride);
    dst += (copy.dims[d].count - 1) * std::abs(copy.dims[d].dst_stride);
  }
  const auto reach = [](const OffsetList& list) {
    return list.empty() ? 0 : std::max(list.most(), std::int64_t{0}) - std::min(list.least(), std::int64_t{0});
  };
  return std::max(src + reach(copy.src_list), dst + reach(copy.dst_list));
}

bool fits_lines(const StridedCopy& copy, bool adds) {
  return copy.bytes() / kWord <= kMostUnits && true_extent(copy) / (adds ? 1 : kWord) <= kMostExtent;
}

std::int64_t TaskDraft::blocks() const {
  return std::min(most, std::max(std::int64_t{1}, quotient_up(accesses, kAccessesPerRow * warps)));
}

bool TaskDraft::scattered() const {
  return accesses > 2 * kAccessesPerRow * rows;
}

bool TaskDraft::reduces() const {
  return std::any_of(steps.begin(), steps.end(), [](const GpuStep& step) { return step.verb == Verb::reduce; });
}

bool TaskDraft::in_pieces() const {
  const auto first =
      std::find_if(steps.begin(), steps.end(), [](const auto& step) { return step.verb == Verb::reduce; });
  return std::any_of(first, steps.end(), [](const GpuStep& step) { return step.verb == Verb::wait; });
}

double TaskDraft::time(std::int64_t blocks_of_it) const {
  const std::int64_t tiles = quotient_up(rows, kTileRows * warps * blocks_of_it);  // of a warp
  const double copied = kTileTime * static_cast<double>(tiles) +
                        kAccessTime * static_cast<double>(accesses) / static_cast<double>(blocks_of_it);
  return reduces() ? kCombining * copied : copied;
}

void TaskDraft::add_copy(const StridedCopy& copy, const Located& src, const Located& dst, std::int64_t form) {
  const bool ll = src.ll || dst.ll;
  const bool by_lines = form == kByLines || (ll && form == 0);
  const std::int64_t unit = form > 0 ? form : by_lines ? kWord : form == kByWide ? kWide : unit_of(copy, src, dst);
  const std::int64_t scale = form > 0 ? 1 : unit;  // elements may be unaligned
  const std::int64_t units_of_it = copy.bytes() / unit;
  // too large for the kernel's 32-bit numbers
  if (units_of_it > kMostUnits || true_extent(copy) / scale > kMostExtent) {
    if (ll) throw Error("a copy is too large for LL lines (a defect in Tasuki)");
    if (copy.listed()) {
      std::vector<StridedCopy> by_step;
      append_steps(copy, by_step);
      for (const StridedCopy& step : by_step) add_copy(step, src, dst, form);
      return;
    }
    const auto [first, second] = halves(copy);
    add_copy(first, src, dst, form);
    add_copy(second, src, dst, form);
    return;
  }
  if (units_of_it == 0) return;
  GpuCopy out;
  out.src_offset = src.ll ? line_of(copy, copy.src_offset, &StridedCopy::Dim::src_stride) : copy.src_offset;
  out.dst_offset = dst.ll ? line_of(copy, copy.dst_offset, &StridedCopy::Dim::dst_stride) : copy.dst_offset;
  out.units = static_cast<std::uint32_t>(units_of_it);
  out.log_unit = static_cast<std::int8_t>(std::bit_width(static_cast<std::uint64_t>(unit)) - 1);
  out.wide = form == kByWide ? 1 : 0;
  const bool in_runs = copy.block >= kRun && form <= 0;
  if (by_lines) {
    out.row_units = kLineWords;
  } else if (in_runs && unit == kWord) {
    out.row_units = 32 * kRowWords;
  }
  out.first_dim = static_cast<std::int32_t>(dims.size());
  const auto add_dim = [&](std::int64_t count, std::int64_t src_stride, std::int64_t dst_stride) {
    dims.push_back(dim_of(count, src.ll ? 0 : src_stride, dst.ll ? 0 : dst_stride, scale));
  };
  const std::optional<Turned> turns = form == 0 && !ll && unit == copy.block ? turned(copy) : std::nullopt;
  const auto add_dim_of_it = [&](int d) {
    if (copy.dims[d].count > 1 || (d == 0 && copy.listed()))
      add_dim(copy.dims[d].count, copy.dims[d].src_stride, copy.dims[d].dst_stride);
  };
  if (turns) {
    out.turned = 1;
    add_dim_of_it(turns->down);
    add_dim_of_it(turns->across);
  }
  if (copy.block > unit) add_dim(copy.block / unit, unit, unit);
  for (int d = copy.ndims - 1; d >= 0; --d)
    if (!turns || (d != turns->down && d != turns->across)) add_dim_of_it(d);
  if (static_cast<std::int32_t>(dims.size()) == out.first_dim) add_dim(1, 0, 0);
  out.dims = static_cast<std::int8_t>(static_cast<std::int32_t>(dims.size()) - out.first_dim);
  for (const auto& [side, list] : {std::pair{kSource, &copy.src_list}, std::pair{kTarget, &copy.dst_list}}) {
    if (list->empty()) continue;
    out.listed = static_cast<std::int8_t>(out.listed | side);
    add_list(*list, scale);
  }
  copies.push_back(out);
  const std::int64_t rows_of_it = rows_of(out);
  rows += rows_of_it;
  if (by_lines) lines += rows_of_it;
  // A thread's part of a row is one access if the row's units are contiguous, or turned; otherwise each unit is one.
  // Even a row of few units takes a whole warp.
  accesses += in_runs || turns ? kAccessesPerRow * rows_of_it : std::max(kAccessesPerRow * rows_of_it, units_of_it);
}

// In the units of strides, in place of dimensions.
void TaskDraft::add_list(const OffsetList& list, std::int64_t unit) {
  for (std::int64_t i = 0; i < list.size(); i += kListedInDim) {
    std::array<std::int32_t, kListedInDim> some{};
    for (std::int64_t k = i; k < std::min<std::int64_t>(i + kListedInDim, list.size()); ++k)
      some[static_cast<std::size_t>(k - i)] = static_cast<std::int32_t>(list[k] / unit);
    dims.push_back(std::bit_cast<GpuDim>(some));
  }
}

bool TaskDraft::flat(std::size_t first) const {
  if (steps[first].verb != Verb::reduce) return false;
  for (std::size_t s = first; s <= first + static_cast<std::size_t>(steps[first].joined); ++s) {
    if (steps[s].copies != 1) return false;
    const GpuCopy& copy = copies[static_cast<std::size_t>(steps[s].first_copy)];
    const GpuDim& dim = dims[static_cast<std::size_t>(copy.first_dim)];
    const bool in_order =
        copy.dims == 1 && copy.listed == 0 && (dim.count == 1 || (dim.src_stride == 1 && dim.dst_stride == 1));
    if (copy.wide == 0 || !in_order) return false;
  }
  return true;
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

TaskDraft TaskDraft::lane(std::size_t number) const {
  TaskDraft one;
  for (std::int32_t s = number == 0 ? 0 : ends[number - 1]; s < ends[number]; ++s) {
    GpuStep step = steps[static_cast<std::size_t>(s)];
    const auto first = deps.begin() + step.first_dep;
    step.first_dep = static_cast<std::int32_t>(one.deps.size());
    one.deps.insert(one.deps.end(), first, first + step.deps);
    one.steps.push_back(step);
  }
  one.ends = {static_cast<std::int32_t>(one.steps.size())};
  return one;
}

void TaskDraft::fill_warp() {
  while (ends.size() % 32 != 0) ends.push_back(static_cast<std::int32_t>(steps.size()));
}

TaskDraft spread(const TaskDraft& lanes, const TaskDraft& separate) {
  constexpr std::size_t kWarp = 32;
  const std::size_t of_separate = std::min<std::size_t>(separate.ends.size(), kGpuWarps / 2);
  const std::size_t of_lanes = kGpuWarps - of_separate;
  std::vector<TaskDraft> threads(kGpuThreads);
  std::size_t used = 0;
  const auto place = [&](const TaskDraft& task, std::size_t first_warp, std::size_t warps) {
    for (std::size_t i = 0; i < task.ends.size(); ++i) {
      const std::size_t thread = (first_warp + i % warps) * kWarp + i / warps;
      threads[thread] = task.lane(i);
      used = std::max(used, thread + 1);
    }
  };
  TaskDraft all = lanes;
  if (lanes.ends.size() > of_lanes * kWarp || separate.ends.size() > of_separate * kWarp) {
    all.add_lanes(separate);
    return all;
  }
  place(lanes, 0, of_lanes);
  if (of_separate > 0) place(separate, of_lanes, of_separate);
  all.ends.clear();
  all.steps.clear();
  all.deps.clear();
  for (std::size_t t = 0; t < used; ++t) {
    if (threads[t].ends.empty()) threads[t].ends = {0};
    all.add_lanes(threads[t]);
  }
  return all;
}

std::int64_t TaskDraft::most_rows_of_a_step() const {
  std::int64_t most_rows = 0;
  for (const GpuStep& step : steps) {
    std::int64_t sum = 0;
    for (std::int32_t k = step.first_copy; k < step.first_copy + step.copies; ++k) {
      sum += rows_of(copies[static_cast<std::size_t>(k)]);
    }
    most_rows = std::max(most_rows, sum);
  }
  return most_rows;
}

// If there are few rows, a tile has one row, so that all are in flight at once. Otherwise a tile has as many rows as a
// thread can keep in flight, but no more than are needed for the same number of rounds.
void TaskDraft::cut(std::int64_t blocks_of_it) {
  const auto all_warps = static_cast<std::uint32_t>(warps * blocks_of_it);
  const std::int64_t at_once = in_turn ? most_rows_of_a_step() : rows;
  const std::int64_t rounds = std::max<std::int64_t>(1, quotient_up(at_once, kTileRows * all_warps));
  const auto tile = static_cast<std::uint32_t>(std::max<std::int64_t>(1, quotient_up(at_once, rounds * all_warps)));
  const auto blocks = static_cast<std::uint32_t>(blocks_of_it);
  for (GpuStep& step : steps) {
    const bool others = (step.awaited & kAwaited) != 0;
    if (blocks == 1) step.deps -= step.follows;  // a barrier of the block orders its threads
    if (step.awaited != 0) step.awaited = others || blocks > 1 ? kAwaited : kInBlock;
  }
  std::uint32_t next = 0;                 // the next block to get one tile more
  std::optional<std::uint32_t> the_same;  // the value of `next` for the move before, if this one is dealt out alike
  for (std::size_t first = 0; first < steps.size(); first += dealt_with(steps[first])) {
    GpuStep& deal = steps[first];
    deal.tile_rows = tile;
    deal.flat = flat(first) ? 1 : 0;
    std::size_t s = first;
    do {
      for (std::int32_t k = steps[s].first_copy; k < steps[s].first_copy + steps[s].copies; ++k) {
        GpuCopy& copy = copies[static_cast<std::size_t>(k)];
        copy.step = static_cast<std::int32_t>(s);
        copy.first_tile = deal.tiles;
        deal.tiles += tiles_of(copy, dims.data() + copy.first_dim, tile);
      }
    } while (++s < steps.size() && goes_with(steps[s - 1], steps[s]) && deal.tiles < kMostTiles);
    deal.followers = static_cast<std::int32_t>(s - first - 1);
    deal.rounds = deal.tiles / all_warps;
    deal.share = deal.tiles % all_warps / blocks;
    deal.more = deal.tiles % all_warps % blocks;
    if (deal.tiles == 0) continue;
    deal.first_block = the_same.value_or(next);
    if (!the_same) next = (next + deal.more) % blocks;
    the_same.reset();
    if (deal.keeps_turn != 0) the_same = deal.first_block;
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
  header.signaller = signaller ? 1 : 0;
  std::memcpy(to.data() + begin, &header, sizeof header);
}

}  // namespace tasuki
