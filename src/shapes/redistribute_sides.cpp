// The sides of a redistribution: see redistribute_sides.hpp.
//
// A cell that moves has a position: (k0, k1, ...), counted along the sections and in the order of the target's
// dimensions. Along one dimension the positions of a rank are a few runs, cut where the other side's blocks end. What
// two ranks have in common is the product of the runs of all dimensions, so the dimensions are looked at one by one.
#include "shapes/redistribute_sides.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "grid/distribution.hpp"
#include "layout/checked.hpp"
#include "layout/sequence.hpp"

namespace tasuki {

namespace {

using Extents = std::vector<std::int64_t>;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::int64_t rounded_down(std::int64_t a, std::int64_t b) {  // b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

std::vector<Section> sections_of(const ArraySide& side) {
  if (!side.sections.empty()) return side.sections;
  std::vector<Section> whole;
  for (const std::int64_t extent : side.array.extents) whole.push_back({0, extent, 1});
  return whole;
}

std::string complaint_about(const ArraySide& side, int ranks) {
  if (std::string wrong = side.array.complaint(ranks); !wrong.empty()) return wrong;
  const auto& sections = side.sections;
  const auto& extents = side.array.extents;
  if (sections.empty()) return {};
  if (sections.size() != extents.size())
    return fmt::format("the section has {} dimensions, but the array has {}", sections.size(), extents.size());
  for (std::size_t d = 0; d < sections.size(); ++d) {
    const Section& section = sections[d];
    if (section.count < 0)
      return fmt::format("the section has {} indices of dimension {}; it must not be negative", section.count, d);
    if (section.step == 0) return fmt::format("the step of the section in dimension {} is 0", d);
    if (section.count == 0) continue;
    const Wide last = section.start + Wide{section.count - 1} * section.step;
    if (section.start < 0 || section.start >= extents[d] || last < 0 || last >= extents[d])
      return fmt::format(
          "the section of dimension {} ({} indices from {}, {} apart) leaves the array, which has indices 0 to {}", d,
          section.count, section.start, section.step, extents[d] - 1);
  }
  return {};
}

// Positions `begin` to `end` of one dimension that lie in a block of one coordinate; `local` is that of `begin`.
struct Run {
  std::int64_t begin = 0, end = 0;
  std::int64_t local = 0;
};

// The part of a section that lies in a block.
Run run_in(const DimBlock& block, const Section& section) {
  Run run;
  const std::int64_t low = block.begin - section.start;
  const std::int64_t high = block.end - 1 - section.start;
  if (section.step > 0) {
    run.begin = -rounded_down(-low, section.step);
    run.end = rounded_down(high, section.step) + 1;
  } else {
    run.begin = -rounded_down(high, -section.step);
    run.end = rounded_down(-low, -section.step) + 1;
  }
  run.begin = std::max<std::int64_t>(run.begin, 0);
  run.end = std::min(run.end, section.count);
  run.local = block.local + section.start + run.begin * section.step - block.begin;
  return run;
}

Layout bytes_of(const std::vector<std::vector<CommonRun>>& dims, std::int64_t CommonRun::*local,
                const std::vector<Section>& sections, const std::vector<int>& axes, const LocalCells& memory) {
  Layout bytes = memory.cell;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const std::size_t dim = at(axes[d]);
    Extents lengths, begins;
    for (const CommonRun& run : dims[d]) {
      lengths.push_back(run.count);
      begins.push_back(run.*local * memory.strides[dim]);
    }
    bytes = Layout::hindexed(lengths, begins, Layout::resized(bytes, 0, sections[dim].step * memory.strides[dim]));
  }
  return moved(bytes, -memory.range().begin);
}

}  // namespace

LocalCells LocalCells::c_order(std::vector<std::int64_t> extents, const Layout& cell) {
  LocalCells cells{std::move(extents), cell, {}};
  cells.strides.resize(cells.extents.size());
  std::int64_t stride = cell.extent();
  for (std::size_t d = cells.strides.size(); d-- > 0;) {
    cells.strides[d] = stride;
    stride = narrow(Wide{stride} * std::max<std::int64_t>(cells.extents[d], 1), "the size", "the local extent",
                    cells.extents[d]);
  }
  return cells;
}

ByteRange LocalCells::range() const {
  Wide begin = cell.true_lower_bound();
  Wide end = cell.true_upper_bound();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return {};
    const Wide reach = Wide{extents[d] - 1} * strides[d];
    (reach < 0 ? begin : end) += reach;
  }
  const char* const what = "the size of a local array";
  return {narrow(begin, what, "stride", strides.front()), narrow(end, what, "stride", strides.front())};
}

bool LocalCells::cells_share_bytes() const {
  Layout all = cell;
  for (std::size_t d = extents.size(); d-- > 0;) all = Layout::hvector(extents[d], 1, strides[d], all);
  return all.overlaps();
}

std::string complaint_about(const ArraySide& from, const ArraySide& to, const std::vector<int>& axes, int ranks) {
  for (const auto& [name, side] : {std::pair{"from", &from}, std::pair{"to", &to}})
    if (std::string wrong = complaint_about(*side, ranks); !wrong.empty())
      return fmt::format("argument '{}': {}", name, wrong);
  const std::size_t dims = from.array.extents.size();
  if (to.array.extents.size() != dims)
    return fmt::format("argument 'from' has {} dimensions, but 'to' has {}; they must be equal", dims,
                       to.array.extents.size());
  std::vector<int> order = axes;
  std::vector<int> plain(dims);
  std::iota(plain.begin(), plain.end(), 0);
  if (order.empty()) order = plain;
  if (!std::is_permutation(order.begin(), order.end(), plain.begin(), plain.end()))
    return fmt::format("argument 'axes' is ({}); it must name each of the dimensions 0 to {} once",
                       fmt::join(axes, ", "), dims - 1);
  Extents given, taken;
  const std::vector<Section> given_by_dim = sections_of(from);
  for (const int d : order) given.push_back(given_by_dim[at(d)].count);
  for (const Section& section : sections_of(to)) taken.push_back(section.count);
  if (given == taken) return {};
  const char* const what = from.sections.empty() && to.sections.empty() ? "array" : "section";
  return fmt::format("the {} of argument 'from' is {}{}, but that of 'to' is {}; they must be equal", what,
                     fmt::join(given, " x "), axes.empty() ? "" : " once its axes are permuted",
                     fmt::join(taken, " x "));
}

// Runs along one dimension, by coordinate of the other side in it. All coordinates have them if it is replicated.
struct RedistributeSides::Along {
  bool replicated = false;
  std::map<int, std::vector<CommonRun>> runs;
};

RedistributeSides::RedistributeSides(ArraySide from, ArraySide to, std::vector<int> axes)
    : from_(std::move(from)), to_(std::move(to)), axes_(std::move(axes)) {
  from_.sections = sections_of(from_);
  to_.sections = sections_of(to_);
  if (axes_.empty()) {
    axes_.resize(from_.array.extents.size());
    std::iota(axes_.begin(), axes_.end(), 0);
  }
  for (const auto& [side, places] : {std::pair{&from_, &from_place_of_}, std::pair{&to_, &to_place_of_}}) {
    for (int place = 0; place < side->array.grid_size(); ++place) {
      const std::size_t rank = at(side->array.rank_of(place));
      if (places->size() <= rank) places->resize(rank + 1, -1);
      (*places)[rank] = place;
    }
  }
}

RedistributeSides::Along RedistributeSides::along(std::size_t d, int coordinate, bool at_target) const {
  const std::size_t source_dim = at(axes_[d]);
  const ArraySide& own = at_target ? to_ : from_;
  const ArraySide& other = at_target ? from_ : to_;
  const std::size_t own_dim = at_target ? d : source_dim;
  const std::size_t other_dim = at_target ? source_dim : d;
  const Section& own_section = own.sections[own_dim];
  const Section& other_section = other.sections[other_dim];
  const DimDistribution& other_how = other.array.dims[other_dim];
  std::vector<Run> mine;
  for (const DimBlock& block : blocks_of(own.array.dims[own_dim], own.array.extents[own_dim], coordinate))
    if (const Run run = run_in(block, own_section); run.begin < run.end) mine.push_back(run);
  std::ranges::sort(mine, {}, &Run::begin);
  Along along;
  along.replicated = other_how.kind == DimDistribution::Kind::replicated;
  for (const Run& run : mine) {
    for (std::int64_t k = run.begin; k < run.end;) {
      const std::int64_t index = other_section.start + k * other_section.step;
      const DimBlock block = block_at(other_how, other.array.extents[other_dim], index);
      const Run theirs = run_in(block, other_section);
      const std::int64_t end = std::min(run.end, theirs.end);
      const std::int64_t here = run.local + (k - run.begin) * own_section.step;
      const std::int64_t there = block.local + index - block.begin;
      CommonRun common{end - k, here, there};
      if (at_target) std::swap(common.source, common.target);
      along.runs[block.coordinate].push_back(common);
      k = end;
    }
  }
  return along;
}

int RedistributeSides::source_place(std::vector<int> coordinates, int target_place) const {
  const ArrayDistribution& array = from_.array;
  int replicas = 1;
  for (const DimDistribution& dim : array.dims)
    if (dim.kind == DimDistribution::Kind::replicated) replicas *= dim.ranks;
  if (replicas == 1) return place_at(array, coordinates);
  const auto choose = [&](auto&& coordinate) {
    for (std::size_t d = array.dims.size(); d-- > 0;)
      if (array.dims[d].kind == DimDistribution::Kind::replicated) coordinates[d] = coordinate(d);
    return place_at(array, coordinates);
  };
  const std::size_t rank = at(to_.array.rank_of(target_place));
  if (rank < from_place_of_.size() && from_place_of_[rank] >= 0) {
    const std::vector<int> own = coordinates_of(array, from_place_of_[rank]);
    if (const int place = choose([&](std::size_t d) { return own[d]; }); place == from_place_of_[rank]) return place;
  }
  int number = target_place % replicas;
  return choose([&](std::size_t d) {
    const int coordinate = number % array.dims[d].ranks;
    number /= array.dims[d].ranks;
    return coordinate;
  });
}

std::vector<CommonCells> RedistributeSides::common(int rank, bool at_target) const {
  const std::vector<int>& places = at_target ? to_place_of_ : from_place_of_;
  if (rank < 0 || at(rank) >= places.size() || places[at(rank)] < 0) return {};
  const ArrayDistribution& own = at_target ? to_.array : from_.array;
  const ArrayDistribution& other = at_target ? from_.array : to_.array;
  const int place = places[at(rank)];
  const std::vector<int> here = coordinates_of(own, place);
  const std::size_t dims = axes_.size();
  std::vector<Along> all;
  for (std::size_t d = 0; d < dims; ++d) {
    all.push_back(along(d, here[at_target ? d : at(axes_[d])], at_target));
    if (all.back().runs.empty()) return {};
  }
  std::vector<CommonCells> found;
  std::vector<int> there(dims, 0);  // coordinates on the other side
  std::vector<const std::vector<CommonRun>*> runs(dims);
  const auto add = [&](int other_place) {
    CommonCells& cells = found.emplace_back();
    cells.rank = other.rank_of(other_place);
    for (const auto* list : runs) cells.dims.push_back(*list);
  };
  const auto walk = [&](auto&& self, std::size_t d) -> void {
    if (d == dims) {
      if (at_target)
        add(source_place(there, place));
      else if (const int target = place_at(other, there); source_place(here, target) == place)
        add(target);
      return;
    }
    const std::size_t other_dim = at_target ? at(axes_[d]) : d;
    for (const auto& [coordinate, list] : all[d].runs) {
      runs[d] = &list;
      // Of replicas one sends, which `source_place` chooses, and all receive.
      const bool each = all[d].replicated && !at_target;
      const int last = each ? other.dims[other_dim].ranks - 1 : coordinate;
      for (int c = coordinate; c <= last; ++c) {
        there[other_dim] = c;
        self(self, d + 1);
      }
    }
  };
  walk(walk, 0);
  std::ranges::sort(found, {}, &CommonCells::rank);
  return found;
}

std::vector<CommonCells> RedistributeSides::sent(int rank) const {
  return common(rank, false);
}

std::vector<CommonCells> RedistributeSides::received(int rank) const {
  return common(rank, true);
}

Layout RedistributeSides::source_bytes(const CommonCells& cells, const LocalCells& memory) const {
  return bytes_of(cells.dims, &CommonRun::source, from_.sections, axes_, memory);
}

Layout RedistributeSides::target_bytes(const CommonCells& cells, const LocalCells& memory) const {
  std::vector<int> plain(axes_.size());
  std::iota(plain.begin(), plain.end(), 0);
  return bytes_of(cells.dims, &CommonRun::target, to_.sections, plain, memory);
}

}  // namespace tasuki
