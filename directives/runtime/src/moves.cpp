// See moves.hpp.
#include "moves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

namespace {

// Dimensions of a side that have more than one element, the others' indices fixed.
struct Reading {
  std::vector<int> dims;
  std::vector<std::int64_t> counts;
};

Reading reading_of(const char* name, const Side& side) {
  const ArrayShape& array = *side.array;
  Reading reading;
  for (int d = 0; d < array.ndims(); ++d) {
    const Range& range = side.section[static_cast<std::size_t>(d)];
    if (range.step < 1)
      throw Error(
          fmt::format("the section's step is {} in dimension {} of '{}'; it must be at least 1", range.step, d, name));
    if (range.first < 0 || range.end > array.dim(d).extent)
      throw Error(
          fmt::format("the section is {} to {} in dimension {} of the {} side, whose array has {} elements there",
                      range.first, range.end - 1, d, name, array.dim(d).extent));
    if (range.count() == 1) continue;
    reading.dims.push_back(d);
    reading.counts.push_back(range.count());
  }
  return reading;
}

// Of the receiver at place `receiver` of its nodes: whether the source node at `source` is the one that serves it.
bool serves(const NodeShape& sources, const std::vector<int>& replicated, const Coordinates& source, int receiver_rank,
            int receiver) {
  if (replicated.empty()) return true;
  const int mine = sources.number_of(receiver_rank);
  int replicas = 1;
  int replica = 0;
  for (const int n : replicated) {
    const int extent = sources.extents[static_cast<std::size_t>(n)];
    replicas *= extent;
    replica = replica * extent + source[static_cast<std::size_t>(n)];
  }
  if (mine >= 0) {
    const Coordinates own = sources.coordinates(mine);
    const auto is_replicated = [&](int n) {
      return std::find(replicated.begin(), replicated.end(), n) != replicated.end();
    };
    bool has_it = true;
    bool same = true;
    for (int n = 0; n < sources.ndims(); ++n) {
      const bool equal = own[static_cast<std::size_t>(n)] == source[static_cast<std::size_t>(n)];
      same = same && equal;
      has_it = has_it && (equal || is_replicated(n));
    }
    if (has_it) return same;
  }
  return replica == receiver % replicas;
}

// Elements that lie evenly: their displacements in bytes.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
};
using Runs = std::vector<Run>;

void add(Runs& runs, std::int64_t at) {
  if (!runs.empty()) {
    Run& last = runs.back();
    if (last.count == 1) last.stride = at - last.first;
    if (at == last.first + last.count * last.stride) {
      ++last.count;
      return;
    }
  }
  runs.push_back({at, 1, 0});
}

// Which places of a section the part of a dimension has that is not cyclic: a range of numbers from 0.
Range places_in(const Range& section, const ArrayShape& array, int d, int part) {
  const auto before = [&](std::int64_t index) {
    const std::int64_t beyond = index - section.first;
    return std::clamp<std::int64_t>(beyond <= 0 ? 0 : (beyond + section.step - 1) / section.step, 0, section.count());
  };
  return {before(array.begin_of(d, part)), before(array.begin_of(d, part + 1))};
}

// The elements that a rank has of one dimension of the section, by the part of the other side.
std::vector<Runs> by_part(const Side& mine, int my_dim, int my_part, std::int64_t stride, const Side& other,
                          int other_dim) {
  const ArrayShape& array = *mine.array;
  const Range& here = mine.section[static_cast<std::size_t>(my_dim)];
  const Range& there = other.section[static_cast<std::size_t>(other_dim)];
  const Cut& other_cut = other.array->cut(other_dim);
  std::vector<Runs> lists(static_cast<std::size_t>(other_cut.parts()));
  const auto at = [&](std::int64_t k) { return array.local(my_dim, my_part, here.first + k * here.step) * stride; };
  if (array.cut(my_dim).contiguous() && other_cut.contiguous()) {
    const Range own = places_in(here, array, my_dim, my_part);
    for (int part = 0; part < other_cut.parts(); ++part) {
      const Range theirs = places_in(there, *other.array, other_dim, part);
      const Range both{std::max(own.first, theirs.first), std::min(own.end, theirs.end)};
      if (both.count() > 0)
        lists[static_cast<std::size_t>(part)].push_back({at(both.first), both.count(), here.step * stride});
    }
    return lists;
  }
  const std::int64_t count = here.count();
  for (std::int64_t k = 0; k < count; ++k) {
    if (array.distributed(my_dim) && array.owner(my_dim, here.first + k * here.step) != my_part) continue;
    const int part = other.array->owner(other_dim, there.first + k * there.step);
    add(lists[static_cast<std::size_t>(part)], at(k));
  }
  return lists;
}

// The inner layout at each place of the runs.
Layout repeated(const Runs& runs, const Layout& inner) {
  if (runs.size() == 1) {
    const std::vector<std::int64_t> one{1};
    const std::vector<std::int64_t> first{runs[0].first};
    return Layout::hindexed(one, first, Layout::hvector(runs[0].count, 1, runs[0].stride, inner));
  }
  std::vector<std::int64_t> at;
  for (const auto& [first, count, stride] : runs)
    for (std::int64_t k = 0; k < count; ++k) at.push_back(first + k * stride);
  const std::vector<std::int64_t> ones(at.size(), 1);
  return Layout::hindexed(ones, at, inner);
}

// What this rank does as one side of an assignment.
class Half {
 public:
  Half(const Side& mine, const std::vector<int>& dims, const Side& other, const std::vector<int>& other_dims,
       int number)
      : mine_(mine), other_(other), other_dims_(other_dims), at_(mine.array->nodes().coordinates(number)) {
    const ArrayShape& array = *mine.array;
    const Indices strides = array.strides(at_);
    for (int d = 0; d < array.ndims(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
      const std::int64_t index = mine.section[static_cast<std::size_t>(d)].first;
      const int part = array.part(d, at_);
      if (array.distributed(d) && array.owner(d, index) != part)
        nothing_ = true;
      else
        offset_ += array.local(d, part, index) * strides[static_cast<std::size_t>(d)] * array.element_bytes();
    }
    for (std::size_t j = 0; j < dims.size() && !nothing_; ++j)
      lists_.push_back(by_part(mine, dims[j], array.part(dims[j], at_),
                               strides[static_cast<std::size_t>(dims[j])] * array.element_bytes(), other,
                               other_dims[j]));
  }

  const Coordinates& at() const { return at_; }

  /// What it exchanges with the other side's node at `there`.
  Layout with(const Coordinates& there) const {
    if (nothing_) return {};
    const ArrayShape& array = *other_.array;
    for (int d = 0; d < array.ndims(); ++d) {
      if (!array.distributed(d) || std::find(other_dims_.begin(), other_dims_.end(), d) != other_dims_.end()) continue;
      if (array.owner(d, other_.section[static_cast<std::size_t>(d)].first) != array.part(d, there)) return {};
    }
    Layout layout = Layout::bytes(mine_.array->element_bytes());
    for (std::size_t j = lists_.size(); j-- > 0;) {
      const Runs& list = lists_[j][static_cast<std::size_t>(array.part(other_dims_[j], there))];
      if (list.empty()) return {};
      layout = repeated(list, layout);
    }
    return repeated({{offset_, 1, 0}}, layout);
  }

 private:
  const Side& mine_;
  const Side& other_;
  std::vector<int> other_dims_;
  Coordinates at_;
  std::vector<std::vector<Runs>> lists_;  // by dimension of the section, and the other side's part
  std::int64_t offset_ = 0;
  bool nothing_ = false;
};

}  // namespace

Moves moves_of(const Side& to, const Side& from, int rank, const std::vector<int>& order) {
  if (to.array->element_bytes() != from.array->element_bytes())
    throw Error(fmt::format("the left side's elements have {} bytes, the right side's {}", to.array->element_bytes(),
                            from.array->element_bytes()));
  const Reading left = reading_of("left", to);
  Reading right = reading_of("right", from);
  if (order.size() == right.dims.size() && !order.empty()) {
    const Reading as_they_are = right;
    for (std::size_t j = 0; j < order.size(); ++j) {
      right.dims[j] = as_they_are.dims[static_cast<std::size_t>(order[j])];
      right.counts[j] = as_they_are.counts[static_cast<std::size_t>(order[j])];
    }
  }
  if (left.counts != right.counts)
    throw Error(fmt::format("the left section has {} elements, the right one {}",
                            left.counts.empty() ? "1" : fmt::format("{}", fmt::join(left.counts, " x ")),
                            right.counts.empty() ? "1" : fmt::format("{}", fmt::join(right.counts, " x "))));
  Moves moves;
  if (std::find(left.counts.begin(), left.counts.end(), 0) != left.counts.end()) return moves;
  const NodeShape& sources = from.array->nodes();
  const NodeShape& receivers = to.array->nodes();
  const std::vector<int> replicated = from.array->replicated();
  if (const int number = sources.number_of(rank); number >= 0) {
    const Half half(from, right.dims, to, left.dims, number);
    for (int n = 0; n < receivers.size(); ++n) {
      const int receiver = receivers.ranks[static_cast<std::size_t>(n)];
      if (!serves(sources, replicated, half.at(), receiver, n)) continue;
      if (Layout layout = half.with(receivers.coordinates(n)); layout.size() > 0)
        moves.sent.push_back({receiver, std::move(layout)});
    }
  }
  if (const int number = receivers.number_of(rank); number >= 0) {
    const Half half(to, left.dims, from, right.dims, number);
    for (int n = 0; n < sources.size(); ++n) {
      const Coordinates at = sources.coordinates(n);
      if (!serves(sources, replicated, at, rank, number)) continue;
      if (Layout layout = half.with(at); layout.size() > 0)
        moves.received.push_back({sources.ranks[static_cast<std::size_t>(n)], std::move(layout)});
    }
  }
  return moves;
}

Moves shadow_moves(const ArrayShape& array, const std::vector<Layers>& width, bool corners, int rank) {
  Moves moves;
  const NodeShape& nodes = array.nodes();
  const int number = nodes.number_of(rank);
  if (number < 0) return moves;
  const Coordinates mine = nodes.coordinates(number);
  const std::vector<int> replicated = array.replicated();
  // What the node at `receiver` gets from that at `owner`, in the memory of this rank.
  const auto layout_between = [&](const Coordinates& receiver, const Coordinates& owner) -> Layout {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> starts;
    std::vector<std::int64_t> counts;
    for (const int n : replicated)
      if (receiver[static_cast<std::size_t>(n)] != owner[static_cast<std::size_t>(n)]) return {};
    int outside = 0;
    for (int d = 0; d < array.ndims(); ++d) {
      const int to = array.part(d, receiver);
      const int from = array.part(d, owner);
      if (array.owned(d, to) == 0 || array.owned(d, from) == 0) return {};
      outside += to == from ? 0 : 1;
      const Layers& layers = width[static_cast<std::size_t>(d)];
      const bool full = array.dim(d).full_shadow && layers.below < 0;
      const std::int64_t below = full ? 0 : array.begin_of(d, to) - layers.below;
      const std::int64_t above = full ? array.dim(d).extent : array.begin_of(d, to + 1) + layers.above;
      const std::int64_t begin = std::max(below, array.begin_of(d, from));
      const std::int64_t end = std::min(above, array.begin_of(d, from + 1));
      if (end <= begin) return {};
      const int here = array.part(d, mine);
      sizes.push_back(array.stored(d, here));
      starts.push_back(array.local(d, here, begin));
      counts.push_back(end - begin);
    }
    if (outside == 0 || (outside > 1 && !corners)) return {};
    return Layout::subarray(sizes, counts, starts, Layout::bytes(array.element_bytes()));
  };
  for (int n = 0; n < nodes.size(); ++n) {
    if (n == number) continue;
    const Coordinates other = nodes.coordinates(n);
    const int other_rank = nodes.ranks[static_cast<std::size_t>(n)];
    if (Layout layout = layout_between(other, mine); layout.size() > 0)
      moves.sent.push_back({other_rank, std::move(layout)});
    if (Layout layout = layout_between(mine, other); layout.size() > 0)
      moves.received.push_back({other_rank, std::move(layout)});
  }
  return moves;
}

}  // namespace tasuki::xmp
