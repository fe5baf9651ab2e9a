// A layout as a sequence of bytes: see sequence.hpp.
#include "layout/sequence.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Nests of one shape that follow each other.
struct Group {
  std::int64_t bytes = 0;
  std::span<const Dim> dims;
  std::vector<std::int64_t> offsets;
};

// Two runs are always some stride apart, so a list's runs are nests of two steps, each with a stride of its own. Short
// dimensions are taken step by step: then these are of one shape.
std::vector<Group> groups_of(std::span<const Block> nests) {
  constexpr std::int64_t kFewSteps = 4;
  std::vector<Group> groups;
  const auto add = [&](std::int64_t bytes, std::span<const Dim> dims, std::int64_t offset) {
    if (groups.empty() || groups.back().bytes != bytes || !std::ranges::equal(groups.back().dims, dims))
      groups.push_back({bytes, dims, {}});
    groups.back().offsets.push_back(offset);
  };
  for (const Block& nest : nests) {
    const std::span<const Dim> dims = nest.dims;
    if (dims.empty() || dims.front().count > kFewSteps) {
      add(nest.bytes, dims, nest.offset);
    } else {
      for (std::int64_t i = 0; i < dims.front().count; ++i)
        add(nest.bytes, dims.subspan(1), nest.offset + i * dims.front().stride);
    }
  }
  return groups;
}

Layout layout_of(std::int64_t bytes, std::span<const Dim> dims, std::span<const std::int64_t> offsets) {
  Layout shape = Layout::bytes(bytes);
  for (std::size_t d = dims.size(); d-- > 0;) shape = Layout::hvector(dims[d].count, 1, dims[d].stride, shape);
  const std::vector<std::int64_t> ones(offsets.size(), 1);
  return Layout::hindexed(ones, offsets, shape);
}

Layout layout_of(std::span<const Block> nests) {
  std::vector<Layout> parts;
  for (const Group& group : groups_of(nests)) parts.push_back(layout_of(group.bytes, group.dims, group.offsets));
  return joined(parts);
}

// Adds bytes `begin` to `end` (exclusive) of a nest: at most two pieces a dimension, and what is between them.
void cut(const Block& nest, std::int64_t begin, std::int64_t end, std::vector<Block>& pieces) {
  if (begin == end) return;
  if (nest.dims.empty()) {
    pieces.push_back({nest.offset + begin, end - begin, {}});
    return;
  }
  const Dim outer = nest.dims.front();
  const std::int64_t unit = nest.size() / outer.count;
  const auto step = [&](std::int64_t number) {
    return Block{nest.offset + number * outer.stride, nest.bytes, {nest.dims.begin() + 1, nest.dims.end()}};
  };
  std::int64_t first = begin / unit;
  const std::int64_t last = end / unit;
  if (first == last) return cut(step(first), begin - first * unit, end - first * unit, pieces);
  if (begin > first * unit) {
    cut(step(first), begin - first * unit, unit, pieces);
    ++first;
  }
  if (last - first == 1) {
    pieces.push_back(step(first));
  } else if (last > first) {
    Block between = nest;
    between.offset += first * outer.stride;
    between.dims.front().count = last - first;
    pieces.push_back(std::move(between));
  }
  cut(step(last), 0, end - last * unit, pieces);
}

}  // namespace

Layout joined(std::span<const Layout> layouts) {
  if (layouts.size() == 1) return layouts.front();
  const std::vector<std::int64_t> ones(layouts.size(), 1);
  const std::vector<std::int64_t> zeros(layouts.size(), 0);
  return Layout::structure(ones, zeros, layouts);
}

Layout moved(const Layout& layout, std::int64_t by) {
  if (by == 0) return layout;
  const std::array<std::int64_t, 1> one{1};
  const std::array<std::int64_t, 1> at{by};
  return Layout::hindexed(one, at, layout);
}

Sequence::Sequence(Layout layout) : layout_(std::move(layout)) {
  begins_.push_back(0);
  for (const Block& nest : layout_.blocks()) begins_.push_back(begins_.back() + nest.size());
}

Layout Sequence::part(std::int64_t begin, std::int64_t bytes) const {
  if (begin == 0 && bytes == layout_.size()) return layout_;
  std::vector<Block> pieces;
  const std::int64_t end = begin + bytes;
  // The nest in which byte `begin` is.
  auto at = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) - 1;
  for (; at < layout_.blocks().size() && begins_[at] < end; ++at) {
    const Block& nest = layout_.blocks()[at];
    cut(nest, std::max(begin, begins_[at]) - begins_[at], std::min(end, begins_[at + 1]) - begins_[at], pieces);
  }
  return layout_of(pieces);
}

bool meet(const Layout& a, const Layout& b, std::int64_t apart) {
  if (a.size() == 0 || b.size() == 0) return false;
  if (a.true_upper_bound() <= apart + b.true_lower_bound() || apart + b.true_upper_bound() <= a.true_lower_bound())
    return false;
  const std::array<std::int64_t, 2> ones{1, 1};
  const auto together = [&](const Layout& one, std::int64_t at) {
    const std::array<std::int64_t, 2> offsets{at, apart};
    const std::array<Layout, 2> both{one, b};
    return Layout::structure(ones, offsets, both).overlaps();
  };
  if (!a.overlaps()) return together(a, 0);
  // `a` names a byte twice: nest by nest, without the steps that stay where they are.
  for (Block nest : a.blocks()) {
    std::erase_if(nest.dims, [](const Dim& dim) { return dim.stride == 0; });
    const Layout one = layout_of(nest.bytes, nest.dims, std::array<std::int64_t, 1>{0});
    if (!one.overlaps() && together(one, nest.offset)) return true;
  }
  return false;
}

void append(const Layout& layout, std::vector<std::int64_t>& numbers) {
  const std::vector<Group> groups = groups_of(layout.blocks());
  numbers.push_back(std::ssize(groups));
  for (const Group& group : groups) {
    numbers.insert(numbers.end(), {group.bytes, std::ssize(group.dims)});
    for (const Dim& dim : group.dims) numbers.insert(numbers.end(), {dim.count, dim.stride});
    numbers.push_back(std::ssize(group.offsets));
    numbers.insert(numbers.end(), group.offsets.begin(), group.offsets.end());
  }
}

std::optional<Layout> take_layout(std::span<const std::int64_t>& numbers) {
  std::size_t at = 0;
  const auto left = [&] { return static_cast<std::int64_t>(numbers.size() - at); };
  if (left() < 1 || numbers[0] < 0 || numbers[0] > left()) return {};
  std::vector<Layout> parts;
  try {
    for (std::int64_t group = numbers[at++]; group > 0; --group) {
      if (left() < 2) return {};
      const std::int64_t dims = numbers[at + 1];
      if (numbers[at] <= 0 || dims < 0 || dims > kMaxDims || left() < 3 + 2 * dims) return {};
      const std::int64_t bytes = numbers[at];
      std::vector<Dim> shape;
      at += 2;
      for (std::int64_t d = 0; d < dims; ++d, at += 2) {
        if (numbers[at] <= 0) return {};
        shape.push_back({numbers[at], numbers[at + 1]});
      }
      const std::int64_t count = numbers[at++];
      if (count <= 0 || count > left()) return {};
      parts.push_back(layout_of(bytes, shape, numbers.subspan(at, static_cast<std::size_t>(count))));
      at += static_cast<std::size_t>(count);
    }
    numbers = numbers.subspan(at);
    return joined(parts);
  } catch (const Error&) {  // numbers that no layout has: offsets past 64 bits
    return {};
  }
}

}  // namespace tasuki
