// Layout's constructors: each lists the bytes of its elements in type-map order; the normaliser folds the list.
#include "tasuki/layout.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "layout/checked.hpp"
#include "layout/normalise.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

/// Collects elements at displacements: their bytes go to the normaliser, their bounds follow MPI's rules.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(const char* operation) : operation_(operation), normaliser_(operation) {}

  /// Appends `element` at `displacement`, repeated by `repeat` (outermost first). `argument` and `given` are what the
  /// user passed, for the error if an offset does not fit into 64 bits.
  void place(std::int64_t displacement, std::span<const Dim> repeat, const Layout& element, const char* argument,
             std::int64_t given) {
    Wide copies = 1;
    std::int64_t low = displacement;
    std::int64_t high = displacement;
    for (const Dim& dim : repeat) {
      if (dim.count == 0) return;
      const Wide span = Wide{dim.count - 1} * dim.stride;
      (span < 0 ? low : high) = narrow((span < 0 ? low : high) + span, operation_, argument, given);
      if (element.size() > 0) copies = narrow(copies * dim.count, operation_, argument, given);
    }
    layout_.size_ = narrow(layout_.size_ + copies * element.size(), operation_, argument, given);
    if (element.size() > 0) {
      narrow(Wide{low} + element.true_lower_bound(), operation_, argument, given);
      narrow(Wide{high} + element.true_upper_bound(), operation_, argument, given);
    }
    if (element.size() > 0 || element.sticky_)
      bound(narrow(Wide{low} + element.lower_bound_, operation_, argument, given),
            narrow(Wide{high} + element.lower_bound_ + element.extent_, operation_, argument, given), element.sticky_);
    if (element.size() == 0) return;

    std::array<Fold::Step, kMaxDims> steps;
    for (std::size_t i = 0; i < repeat.size(); ++i) steps[i] = {repeat[i].count, {repeat[i].stride}};
    append(displacement, {steps.data(), repeat.size()}, element);
  }

  Layout finish() {
    layout_.blocks_ = normaliser_.finish();
    layout_.lower_bound_ = bounded_ ? lower_ : 0;
    layout_.extent_ = bounded_ ? narrow(Wide{upper_} - lower_, operation_, "upper bound", upper_) : 0;
    return std::move(layout_);
  }

 private:
  using Fold = Normaliser<1>;

  void append(std::int64_t at, std::span<const Fold::Step> repeat, const Layout& element) {
    if (element.blocks().size() > 1 && !repeat.empty()) {
      normaliser_.repeat(repeat.front(),
                         [&](const Fold::Offsets& moved) { append(at + moved[0], repeat.subspan(1), element); });
      return;
    }
    for (const Block& block : element.blocks()) {
      std::array<Fold::Step, 2 * kMaxDims> steps;
      auto end = std::copy(repeat.begin(), repeat.end(), steps.begin());
      for (const Dim& dim : block.dims) *end++ = {dim.count, {dim.stride}};
      normaliser_.nest({at + block.offset}, block.bytes, {steps.begin(), end});
    }
  }

  void bound(std::int64_t lower, std::int64_t upper, bool sticky) {
    if (layout_.sticky_ && !sticky) return;
    if (!bounded_ || sticky != layout_.sticky_) {
      lower_ = lower;
      upper_ = upper;
    }
    lower_ = std::min(lower_, lower);
    upper_ = std::max(upper_, upper);
    bounded_ = true;
    layout_.sticky_ = sticky;
  }

  const char* operation_;
  Fold normaliser_;
  Layout layout_;
  bool bounded_ = false;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
};

namespace {

// A stride or displacement in extents, as bytes. If the stride is never taken, any value is allowed.
std::int64_t scaled(std::int64_t in_extents, const Layout& element, const char* operation, const char* argument) {
  return narrow(Wide{in_extents} * element.extent(), operation, argument, in_extents);
}

void check_equal_lengths(std::size_t displacements, std::size_t block_lengths, const char* operation) {
  if (displacements != block_lengths)
    throw Error(fmt::format("{}: {} displacements but {} block lengths; give one displacement to each block", operation,
                            displacements, block_lengths));
}

}  // namespace

Layout Layout::bytes(std::int64_t count) {
  check_count(count, "Layout::bytes", "count");
  Layout byte;
  byte.size_ = byte.extent_ = count;
  if (count > 0) byte.blocks_.push_back({0, count, {}});
  return byte;
}

Layout Layout::contiguous(std::int64_t count, const Layout& element) {
  constexpr const char* kOperation = "Layout::contiguous";
  check_count(count, kOperation, "count");
  LayoutBuilder builder(kOperation);
  const Dim repeat[] = {{count, element.extent()}};
  builder.place(0, repeat, element, "count", count);
  return builder.finish();
}

Layout Layout::vector(std::int64_t count, std::int64_t block_length, std::int64_t stride, const Layout& element) {
  constexpr const char* kOperation = "Layout::vector";
  check_count(count, kOperation, "count");
  check_count(block_length, kOperation, "block_length");
  LayoutBuilder builder(kOperation);
  const std::int64_t stride_bytes = count > 1 ? scaled(stride, element, kOperation, "stride") : 0;
  const Dim repeat[] = {{count, stride_bytes}, {block_length, element.extent()}};
  builder.place(0, repeat, element, "stride", stride);
  return builder.finish();
}

Layout Layout::hvector(std::int64_t count, std::int64_t block_length, std::int64_t stride_bytes,
                       const Layout& element) {
  constexpr const char* kOperation = "Layout::hvector";
  check_count(count, kOperation, "count");
  check_count(block_length, kOperation, "block_length");
  LayoutBuilder builder(kOperation);
  const Dim repeat[] = {{count, stride_bytes}, {block_length, element.extent()}};
  builder.place(0, repeat, element, "stride_bytes", stride_bytes);
  return builder.finish();
}

Layout Layout::subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                        std::span<const std::int64_t> starts, const Layout& element) {
  constexpr const char* kOperation = "Layout::subarray";
  const std::size_t ndims = sizes.size();
  if (ndims < 1 || ndims > kMaxDims)
    throw Error(fmt::format("{}: sizes has {} dimensions; 1 to {} are possible", kOperation, ndims, kMaxDims));
  if (subsizes.size() != ndims || starts.size() != ndims)
    throw Error(fmt::format("{}: sizes has {} dimensions, subsizes {}, starts {}; they must be equal", kOperation,
                            ndims, subsizes.size(), starts.size()));
  std::array<Dim, kMaxDims> repeat;
  std::int64_t displacement = 0;
  std::int64_t stride = element.extent();
  for (std::size_t i = ndims; i-- > 0;) {
    check_count(sizes[i], kOperation, "sizes");
    check_count(subsizes[i], kOperation, "subsizes");
    if (starts[i] < 0 || subsizes[i] > sizes[i] || starts[i] > sizes[i] - subsizes[i])
      throw Error(fmt::format("{}: dimension {}: the box of {} cells from {} leaves the array of {} cells", kOperation,
                              i, subsizes[i], starts[i], sizes[i]));
    repeat[i] = {subsizes[i], stride};
    displacement = narrow(displacement + Wide{starts[i]} * stride, kOperation, "starts", starts[i]);
    stride = narrow(Wide{stride} * sizes[i], kOperation, "sizes", sizes[i]);
  }
  LayoutBuilder builder(kOperation);
  builder.place(displacement, {repeat.data(), ndims}, element, "sizes", sizes[0]);
  Layout box = builder.finish();
  return resized(box, 0, stride);
}

Layout Layout::indexed(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                       const Layout& element) {
  constexpr const char* kOperation = "Layout::indexed";
  check_equal_lengths(displacements.size(), block_lengths.size(), kOperation);
  LayoutBuilder builder(kOperation);
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    check_count(block_lengths[i], kOperation, "block_lengths");
    const Dim repeat[] = {{block_lengths[i], element.extent()}};
    builder.place(scaled(displacements[i], element, kOperation, "displacements"), repeat, element, "displacements",
                  displacements[i]);
  }
  return builder.finish();
}

Layout Layout::hindexed(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                        const Layout& element) {
  constexpr const char* kOperation = "Layout::hindexed";
  check_equal_lengths(displacements.size(), block_lengths.size(), kOperation);
  LayoutBuilder builder(kOperation);
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    check_count(block_lengths[i], kOperation, "block_lengths");
    const Dim repeat[] = {{block_lengths[i], element.extent()}};
    builder.place(displacements[i], repeat, element, "displacements", displacements[i]);
  }
  return builder.finish();
}

Layout Layout::structure(std::span<const std::int64_t> block_lengths, std::span<const std::int64_t> displacements,
                         std::span<const Layout> elements) {
  constexpr const char* kOperation = "Layout::structure";
  check_equal_lengths(displacements.size(), block_lengths.size(), kOperation);
  if (elements.size() != block_lengths.size())
    throw Error(fmt::format("{}: {} elements but {} block lengths; give one element to each block", kOperation,
                            elements.size(), block_lengths.size()));
  LayoutBuilder builder(kOperation);
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    check_count(block_lengths[i], kOperation, "block_lengths");
    const Dim repeat[] = {{block_lengths[i], elements[i].extent()}};
    builder.place(displacements[i], repeat, elements[i], "displacements", displacements[i]);
  }
  return builder.finish();
}

Layout Layout::resized(const Layout& element, std::int64_t lower_bound, std::int64_t extent) {
  narrow(Wide{lower_bound} + extent, "Layout::resized", "extent", extent);
  Layout result = element;
  result.lower_bound_ = lower_bound;
  result.extent_ = extent;
  result.sticky_ = true;
  return result;
}

}  // namespace tasuki
