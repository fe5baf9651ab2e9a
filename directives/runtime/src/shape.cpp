// See shape.hpp.
#include "shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

Coordinates NodeShape::coordinates(int number) const {
  Coordinates at{};
  for (int d = ndims() - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    at[i] = number % extents[i];
    number /= extents[i];
  }
  return at;
}

int NodeShape::number(const Coordinates& at) const {
  int number = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) number = number * extents[d] + at[d];
  return number;
}

int NodeShape::number_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

ArrayShape::ArrayShape(NodeShape nodes, const std::vector<Spread>& spreads, std::vector<ArrayDim> dims,
                       std::int64_t element_bytes)
    : nodes_(std::move(nodes)), dims_(std::move(dims)), element_bytes_(element_bytes) {
  if (dims_.empty() || dims_.size() > kMaxDims)
    throw Error(fmt::format("it has {} dimensions; 1 to {} are possible", dims_.size(), kMaxDims));
  if (element_bytes < 1)
    throw Error(fmt::format("its elements have {} bytes; they must have at least 1", element_bytes));
  std::vector<int> taken(spreads.size(), -1);
  for (int d = 0; d < ndims(); ++d) {
    const ArrayDim& one = dim(d);
    if (one.extent < 1)
      throw Error(fmt::format("its extent is {} in dimension {}; it must be at least 1", one.extent, d));
    if (one.axis < 0) {
      spreads_.push_back({Cut::whole(0, one.extent), -1});
      continue;
    }
    const auto axis = static_cast<std::size_t>(one.axis);
    if (axis >= spreads.size())
      throw Error(fmt::format("its dimension {} is aligned with dimension {} of a template that has {}", d, one.axis,
                              spreads.size()));
    if (taken[axis] >= 0)
      throw Error(fmt::format("its dimensions {} and {} are both aligned with dimension {} of the template",
                              taken[axis], d, one.axis));
    taken[axis] = d;
    const Cut& cut = spreads[axis].cut;
    // Compared so that nothing overflows: a template's range is a difference of 64 bits.
    if (one.offset < cut.first() || one.extent > cut.end() - cut.first() || one.offset > cut.end() - one.extent)
      throw Error(
          fmt::format("its dimension {} has {} elements from template index {} on, but dimension {} of the "
                      "template is {} to {}",
                      d, one.extent, one.offset, one.axis, cut.first(), cut.end() - 1));
    spreads_.push_back(spreads[axis]);
  }
  set_shadow(dims_);
}

void ArrayShape::set_shadow(const std::vector<ArrayDim>& widths) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (int d = 0; d < ndims(); ++d) {
    const ArrayDim& wanted = widths[static_cast<std::size_t>(d)];
    const auto [below, above] = wanted.shadow;
    if (below < 0 || above < 0 || below > kMost || above > kMost)
      throw Error(fmt::format("its shadow is {}:{} in dimension {}; a width must be 0 to {}", below, above, d, kMost));
    const bool any = below > 0 || above > 0 || wanted.full_shadow;
    if (any && !cut(d).contiguous())
      throw Error(
          fmt::format("its dimension {} is distributed cyclic({}), which has no shadow; distribute it by block "
                      "or gblock",
                      d, cut(d).size()));
  }
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    dims_[d].shadow = widths[d].full_shadow ? Layers{} : widths[d].shadow;
    dims_[d].full_shadow = widths[d].full_shadow;
  }
}

bool ArrayShape::has_shadow() const {
  return std::any_of(dims_.begin(), dims_.end(), [](const ArrayDim& dim) {
    return dim.full_shadow || dim.shadow.below > 0 || dim.shadow.above > 0;
  });
}

bool ArrayShape::has_full_shadow() const {
  return std::any_of(dims_.begin(), dims_.end(), [](const ArrayDim& dim) { return dim.full_shadow; });
}

std::int64_t ArrayShape::owned(int d, int part) const {
  const ArrayDim& one = dim(d);
  return cut(d).below(part, one.offset + one.extent) - cut(d).below(part, one.offset);
}

std::int64_t ArrayShape::begin_of(int d, int part) const {
  return std::clamp<std::int64_t>(cut(d).begin_of(part) - dim(d).offset, 0, dim(d).extent);
}

std::int64_t ArrayShape::stored(int d, int part) const {
  const ArrayDim& one = dim(d);
  return one.full_shadow ? one.extent : owned(d, part) + one.shadow.below + one.shadow.above;
}

std::int64_t ArrayShape::local(int d, int part, std::int64_t index) const {
  const ArrayDim& one = dim(d);
  if (one.full_shadow) return index;
  if (cut(d).contiguous()) return index - begin_of(d, part) + one.shadow.below;
  return cut(d).below(part, index + one.offset) - cut(d).below(part, one.offset);
}

std::int64_t ArrayShape::global(int d, int part, std::int64_t local) const {
  const ArrayDim& one = dim(d);
  if (one.full_shadow) return local;
  if (cut(d).contiguous()) return local + begin_of(d, part) - one.shadow.below;
  return cut(d).nth(part, local + cut(d).below(part, one.offset)) - one.offset;
}

Indices ArrayShape::strides(const Coordinates& at) const {
  Indices strides{};
  std::int64_t stride = 1;
  for (int d = ndims() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= stored(d, part(d, at));
  }
  return strides;
}

std::int64_t ArrayShape::bytes(const Coordinates& at) const {
  std::int64_t bytes = element_bytes_;
  for (int d = 0; d < ndims(); ++d) {
    const std::int64_t here = stored(d, part(d, at));
    if (here > 0 && bytes > std::numeric_limits<std::int64_t>::max() / here)
      throw Error("it has more bytes on a node than 64 bits can count");
    bytes *= here;
  }
  return bytes;
}

std::vector<int> ArrayShape::replicated() const {
  std::vector<int> dims;
  for (int n = 0; n < nodes_.ndims(); ++n) {
    bool used = false;
    for (int d = 0; d < ndims(); ++d) used = used || node_dim(d) == n;
    if (!used) dims.push_back(n);
  }
  return dims;
}

}  // namespace tasuki::xmp
