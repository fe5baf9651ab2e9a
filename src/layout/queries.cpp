// Questions about a layout or a strided copy that move no byte: bounds, pattern, number of runs, a line of text.
#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "layout/normalise.hpp"
#include "tasuki/error.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kNumberBytes = 16;  // the largest single number: a double-precision complex

Pattern classify(std::span<const Block> blocks) {
  if (blocks.empty()) return Pattern::empty;
  if (blocks.size() > 1) return Pattern::list;
  if (blocks[0].dims.empty()) return Pattern::contiguous;
  return blocks[0].bytes > kNumberBytes ? Pattern::block_stride : Pattern::stride;
}

// The pattern of one side of a strided copy, with dimensions merged that only the other side splits. Paths ask for it
// to set their prices, several times a piece, so what has two dimensions left at most is not normalised.
Pattern side_pattern(const StridedCopy& copy, std::int64_t StridedCopy::Dim::*stride) {
  int left = copy.ndims;
  std::int64_t run = copy.block;
  while (left > 0 && (copy.dims[left - 1].count == 1 || copy.dims[left - 1].*stride == run))
    run *= copy.dims[--left].count;
  if (run > 0 && left == 0) return Pattern::contiguous;
  const Pattern regular = run > kNumberBytes ? Pattern::block_stride : Pattern::stride;
  const auto& inner = copy.dims[std::max(left - 1, 0)];
  if (run > 0 && left == 1 && inner.count > 1) return regular;
  // From the last run of an inner row to the first of the next: if that is neither a run's length nor the inner stride,
  // no run and no row goes on across it.
  if (run > 0 && left == 2 && inner.count > 1 && copy.dims[0].count > 1) {
    const std::int64_t step = copy.dims[0].*stride - (inner.count - 1) * (inner.*stride);
    if (step != run && step != inner.*stride) return regular;
  }
  Normaliser<1> normaliser("StridedCopy::pattern");
  std::array<Normaliser<1>::Step, kMaxDims> steps;
  for (int i = 0; i < copy.ndims; ++i) steps[i] = {copy.dims[i].count, {copy.dims[i].*stride}};
  normaliser.nest({0}, copy.block, {steps.data(), static_cast<std::size_t>(copy.ndims)});
  return classify(normaliser.finish());
}

std::string strides_of(const StridedCopy& copy, std::int64_t StridedCopy::Dim::*stride, const OffsetList& list) {
  std::string text = copy.ndims > 0 ? " strides" : "";
  for (int i = 0; i < copy.ndims; ++i)
    text += i == 0 && !list.empty() ? std::string(" listed") : fmt::format(" {}", copy.dims[i].*stride);
  return text;
}

}  // namespace

std::string_view to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::empty:
      return "empty";
    case Pattern::contiguous:
      return "contiguous";
    case Pattern::block_stride:
      return "block stride";
    case Pattern::stride:
      return "stride";
    case Pattern::list:
      return "list";
  }
  throw Error(fmt::format("to_string: {} is no Pattern", static_cast<int>(pattern)));
}

std::int64_t Layout::true_lower_bound() const {
  std::int64_t lowest = blocks_.empty() ? 0 : std::numeric_limits<std::int64_t>::max();
  for (const Block& block : blocks_) {
    std::int64_t low = block.offset;
    for (const Dim& dim : block.dims) low += std::min<std::int64_t>(0, (dim.count - 1) * dim.stride);
    lowest = std::min(lowest, low);
  }
  return lowest;
}

std::int64_t Layout::true_upper_bound() const {
  std::int64_t highest = blocks_.empty() ? 0 : std::numeric_limits<std::int64_t>::min();
  for (const Block& block : blocks_) {
    std::int64_t high = block.offset;
    for (const Dim& dim : block.dims) high += std::max<std::int64_t>(0, (dim.count - 1) * dim.stride);
    highest = std::max(highest, high + block.bytes);
  }
  return highest;
}

Pattern Layout::pattern() const {
  return classify(blocks_);
}

std::int64_t Layout::runs() const {
  std::int64_t total = 0;
  for (const Block& block : blocks_) {
    std::int64_t runs = 1;
    for (const Dim& dim : block.dims) runs *= dim.count;
    total += runs;
  }
  return total;
}

std::string Layout::describe() const {
  if (blocks_.empty()) return "empty";
  if (blocks_.size() > 1) return fmt::format("list of {} blocks, {} runs, {} B", blocks_.size(), runs(), size_);
  const Block& block = blocks_[0];
  std::string text;
  for (const Dim& dim : block.dims) text += fmt::format("{} x ", dim.count);
  text += fmt::format("{} B", block.bytes);
  if (!block.dims.empty()) text += ", strides";
  for (const Dim& dim : block.dims) text += fmt::format(" {}", dim.stride);
  if (block.offset != 0) text += fmt::format(", offset {}", block.offset);
  return text;
}

std::int64_t StridedCopy::blocks() const {
  std::int64_t total = 1;
  for (int i = 0; i < ndims; ++i) total *= dims[i].count;
  return total;
}

Pattern StridedCopy::src_pattern() const {
  if (!src_list.empty()) return Pattern::list;
  return side_pattern(*this, &Dim::src_stride);
}
Pattern StridedCopy::dst_pattern() const {
  if (!dst_list.empty()) return Pattern::list;
  return side_pattern(*this, &Dim::dst_stride);
}

std::string describe(const StridedCopy& copy) {
  std::string text;
  for (int i = 0; i < copy.ndims; ++i) text += fmt::format("{} x ", copy.dims[i].count);
  return text + fmt::format("{} B, src {}{}, dst {}{}", copy.block, copy.src_offset,
                            strides_of(copy, &StridedCopy::Dim::src_stride, copy.src_list), copy.dst_offset,
                            strides_of(copy, &StridedCopy::Dim::dst_stride, copy.dst_list));
}

}  // namespace tasuki
