// A layout as a sequence of bytes: see sequence.hpp.
#include "layout/sequence.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// The layout of a nest that begins at its base.
Layout layout_of(const Block& nest) {
  Layout layout = Layout::bytes(nest.bytes);
  for (std::size_t d = nest.dims.size(); d-- > 0;)
    layout = Layout::hvector(nest.dims[d].count, 1, nest.dims[d].stride, layout);
  return layout;
}

Layout layout_of(std::span<const Block> nests) {
  std::vector<Layout> parts;
  std::vector<std::int64_t> offsets;
  for (const Block& nest : nests) {
    parts.push_back(layout_of(nest));
    offsets.push_back(nest.offset);
  }
  const std::vector<std::int64_t> ones(parts.size(), 1);
  return Layout::structure(ones, offsets, parts);
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
    const Layout one = layout_of(nest);
    if (!one.overlaps() && together(one, nest.offset)) return true;
  }
  return false;
}

void append(const Layout& layout, std::vector<std::int64_t>& numbers) {
  numbers.push_back(std::ssize(layout.blocks()));
  for (const Block& nest : layout.blocks()) {
    numbers.insert(numbers.end(), {nest.offset, nest.bytes, std::ssize(nest.dims)});
    for (const Dim& dim : nest.dims) numbers.insert(numbers.end(), {dim.count, dim.stride});
  }
}

std::optional<Layout> take_layout(std::span<const std::int64_t>& numbers) {
  std::size_t at = 0;
  const auto left = [&] { return static_cast<std::int64_t>(numbers.size() - at); };
  if (left() < 1 || numbers[0] < 0 || numbers[0] > left()) return {};
  std::vector<Block> nests(static_cast<std::size_t>(numbers[at++]));
  for (Block& nest : nests) {
    if (left() < 3) return {};
    const std::int64_t dims = numbers[at + 2];
    if (numbers[at + 1] <= 0 || dims < 0 || dims > kMaxDims || left() < 3 + 2 * dims) return {};
    nest.offset = numbers[at];
    nest.bytes = numbers[at + 1];
    at += 3;
    for (std::int64_t d = 0; d < dims; ++d, at += 2) {
      if (numbers[at] <= 0) return {};
      nest.dims.push_back({numbers[at], numbers[at + 1]});
    }
  }
  numbers = numbers.subspan(at);
  try {
    return layout_of(nests);
  } catch (const Error&) {  // numbers that no layout has: offsets past 64 bits
    return {};
  }
}

}  // namespace tasuki
