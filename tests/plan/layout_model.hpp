// An independent, naive model of layouts for tests: every byte offset written out, bounds by the MPI standard's words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace layout_model {

using Ints = std::vector<std::int64_t>;

struct Model {
  Ints offsets;  // of each byte, in type-map order
  bool bounded = false;
  bool sticky = false;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t extent() const { return upper - lower; }
};

inline Model model_bytes(std::int64_t count) {
  Model model;
  for (std::int64_t i = 0; i < count; ++i) model.offsets.push_back(i);
  model.bounded = count > 0;
  model.upper = count;
  return model;
}

/// The elements one after the other, each at its displacement. Every constructor is a case of this.
inline Model model_structure(const std::vector<std::pair<std::int64_t, const Model*>>& parts) {
  Model whole;
  for (const auto& [displacement, part] : parts) whole.sticky = whole.sticky || part->sticky;
  for (const auto& [displacement, part] : parts) {
    for (const std::int64_t offset : part->offsets) whole.offsets.push_back(displacement + offset);
    if (!part->bounded || part->sticky != whole.sticky) continue;
    const std::int64_t lower = displacement + part->lower;
    const std::int64_t upper = displacement + part->upper;
    whole.lower = whole.bounded ? std::min(whole.lower, lower) : lower;
    whole.upper = whole.bounded ? std::max(whole.upper, upper) : upper;
    whole.bounded = true;
  }
  return whole;
}

inline Model model_hindexed(const Ints& lengths, const Ints& displacements, const Model& element) {
  std::vector<std::pair<std::int64_t, const Model*>> parts;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::int64_t j = 0; j < lengths[i]; ++j) parts.emplace_back(displacements[i] + j * element.extent(), &element);
  return model_structure(parts);
}

inline Model model_hvector(std::int64_t count, std::int64_t length, std::int64_t stride, const Model& element) {
  Ints displacements;
  for (std::int64_t i = 0; i < count; ++i) displacements.push_back(i * stride);
  return model_hindexed(Ints(displacements.size(), length), displacements, element);
}

inline Model model_resized(Model element, std::int64_t lower, std::int64_t extent) {
  element.bounded = element.sticky = true;
  element.lower = lower;
  element.upper = lower + extent;
  return element;
}

inline Model model_subarray(const Ints& sizes, const Ints& subsizes, const Ints& starts, const Model& element) {
  std::int64_t cells = 1;
  for (const std::int64_t size : sizes) cells *= size;
  Ints displacements;
  for (std::int64_t cell = 0; cell < cells; ++cell) {  // visit the whole array, keep what is in the box
    std::int64_t rest = cell;
    bool inside = true;
    for (std::size_t dim = sizes.size(); dim-- > 0;) {
      const std::int64_t index = rest % sizes[dim];
      rest /= sizes[dim];
      inside = inside && index >= starts[dim] && index < starts[dim] + subsizes[dim];
    }
    if (inside) displacements.push_back(cell * element.extent());
  }
  const Model box = model_hindexed(Ints(displacements.size(), 1), displacements, element);
  return model_resized(box, 0, cells * element.extent());
}

/// Every byte offset that the layout's blocks name, in order.
inline Ints expand(const tasuki::Layout& layout) {
  Ints offsets;
  for (const tasuki::Block& block : layout.blocks()) {
    std::int64_t blocks = 1;
    for (const tasuki::Dim& dim : block.dims) blocks *= dim.count;
    for (std::int64_t i = 0; i < blocks; ++i) {
      std::int64_t rest = i;
      std::int64_t at = block.offset;
      for (std::size_t dim = block.dims.size(); dim-- > 0;) {
        at += rest % block.dims[dim].count * block.dims[dim].stride;
        rest /= block.dims[dim].count;
      }
      for (std::int64_t byte = 0; byte < block.bytes; ++byte) offsets.push_back(at + byte);
    }
  }
  return offsets;
}

/// The normal form by its definition: join bytes to maximal runs; then fold neighbours of equal shape in arithmetic
/// progression, pass after pass, until nothing changes or a nest has kMaxDims dimensions.
inline std::vector<tasuki::Block> fold(const Ints& offsets) {
  std::vector<tasuki::Block> blocks;
  for (const std::int64_t offset : offsets) {
    if (!blocks.empty() && blocks.back().offset + blocks.back().bytes == offset)
      ++blocks.back().bytes;
    else
      blocks.push_back({offset, 1, {}});
  }
  for (;;) {
    std::vector<tasuki::Block> folded;
    for (std::size_t i = 0; i < blocks.size();) {
      const auto alike = [&](std::size_t j) {
        return j < blocks.size() && blocks[j].bytes == blocks[i].bytes && blocks[j].dims == blocks[i].dims;
      };
      std::size_t end = i + 1;
      tasuki::Block nest = blocks[i];
      if (alike(end) && nest.dims.size() < static_cast<std::size_t>(tasuki::kMaxDims)) {
        const std::int64_t stride = blocks[end].offset - blocks[i].offset;
        while (alike(end) && blocks[end].offset - blocks[end - 1].offset == stride) ++end;
        nest.dims.insert(nest.dims.begin(), {static_cast<std::int64_t>(end - i), stride});
      }
      folded.push_back(nest);
      i = end;
    }
    if (folded == blocks) return blocks;
    blocks = std::move(folded);
  }
}

struct Pair {
  tasuki::Layout layout;
  Model model;
};

/// Layouts of all constructors, nested at random, with at most `max_bytes` bytes. May overlap, run backwards, be empty.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  Ints numbers(std::int64_t count, std::int64_t low, std::int64_t high) {
    Ints result(static_cast<std::size_t>(count));
    for (std::int64_t& value : result) value = number(low, high);
    return result;
  }
  Ints permutation(std::int64_t count) {
    Ints result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(i);
    std::shuffle(result.begin(), result.end(), engine_);
    return result;
  }

  Pair layout(int depth, std::int64_t max_bytes) {
    const std::int64_t bytes = number(0, 9) == 0 ? 0 : number(1, 9);
    Pair pair{tasuki::Layout::bytes(bytes), model_bytes(bytes)};
    for (int i = 0; i < depth; ++i) {
      Pair outer = wrap(pair);
      if (static_cast<std::int64_t>(outer.model.offsets.size()) > max_bytes) break;
      pair = std::move(outer);
    }
    return pair;
  }

 private:
  Pair wrap(const Pair& element) {
    using tasuki::Layout;
    const auto& [layout, model] = element;
    switch (number(0, 6)) {
      case 0: {
        const std::int64_t count = number(0, 12) == 0 ? 0 : number(1, 7);
        return {Layout::contiguous(count, layout), model_hvector(1, count, 0, model)};
      }
      case 1: {
        const std::int64_t count = number(1, 6), length = number(0, 3), stride = number(-4, 6);
        return {Layout::vector(count, length, stride, layout),
                model_hvector(count, length, stride * model.extent(), model)};
      }
      case 2: {
        const std::int64_t count = number(1, 6), length = number(1, 3), stride = number(-40, 60);
        return {Layout::hvector(count, length, stride, layout), model_hvector(count, length, stride, model)};
      }
      case 3: {
        const std::int64_t count = number(1, 4);
        const Ints lengths = numbers(count, 0, 3), displacements = numbers(count, -9, 9);
        Ints bytes = displacements;
        for (std::int64_t& value : bytes) value *= model.extent();
        return {Layout::indexed(lengths, displacements, layout), model_hindexed(lengths, bytes, model)};
      }
      case 4: {
        const std::int64_t ndims = number(1, 3);
        const Ints subsizes = numbers(ndims, 0, 3), starts = numbers(ndims, 0, 2);
        Ints sizes = numbers(ndims, 1, 2);
        for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += subsizes[i] + starts[i];
        return {Layout::subarray(sizes, subsizes, starts, layout), model_subarray(sizes, subsizes, starts, model)};
      }
      case 5: {
        const std::int64_t lower = number(-5, 5), extent = number(-10, 40);
        return {Layout::resized(layout, lower, extent), model_resized(model, lower, extent)};
      }
      default: {
        const Pair other = this->layout(1, 50);
        const Ints lengths = numbers(3, 0, 2), displacements = numbers(3, -50, 50);
        const Model first = model_hvector(1, lengths[0], 0, model);
        const Model second = model_hvector(1, lengths[1], 0, other.model);
        const Model third = model_hvector(1, lengths[2], 0, model);
        return {Layout::structure(lengths, displacements, std::vector<Layout>{layout, other.layout, layout}),
                model_structure({{displacements[0], &first}, {displacements[1], &second}, {displacements[2], &third}})};
      }
    }
  }

  std::mt19937_64 engine_;
};

/// Source and destination offsets of each byte that a copy moves, in order.
inline std::vector<std::pair<std::int64_t, std::int64_t>> moves(const tasuki::StridedCopy& copy) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (std::int64_t i = 0; i < copy.blocks(); ++i) {
    std::int64_t rest = i, from = copy.src_offset, to = copy.dst_offset;
    for (int dim = copy.ndims; dim-- > 0;) {
      from += rest % copy.dims[dim].count * copy.dims[dim].src_stride;
      to += rest % copy.dims[dim].count * copy.dims[dim].dst_stride;
      rest /= copy.dims[dim].count;
    }
    for (std::int64_t byte = 0; byte < copy.block; ++byte) result.emplace_back(from + byte, to + byte);
  }
  return result;
}

}  // namespace layout_model
