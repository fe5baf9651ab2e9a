// Zips two layouts, or two lists of elements: cuts both into nests of equal size, refines each pair to common strides,
// and folds the result.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "layout/elements.hpp"
#include "layout/lists.hpp"
#include "layout/normalise.hpp"
#include "tasuki/error.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

using Fold = Normaliser<2>;

// One side of the zip: the nests that are left, of which the next may be cut in pieces.
class Side {
 public:
  explicit Side(const Layout& layout) : blocks_(layout.blocks()) {}
  bool empty() const { return pieces_.empty() && blocks_.empty(); }
  const Block& next() const { return pieces_.empty() ? blocks_.front() : pieces_.back(); }
  std::int64_t next_size() const { return next().size(); }
  void pop() {
    if (pieces_.empty())
      blocks_ = blocks_.subspan(1);
    else
      pieces_.pop_back();
  }

  /// Cuts the next nest in two. The first part has `wanted` bytes, or as nearly as one cut along its outermost
  /// dimension allows.
  void cut(std::int64_t wanted) {
    Block rest = next();
    pop();
    Block first = rest;
    if (rest.dims.empty()) {
      first.bytes = wanted;
      rest.offset += wanted;
      rest.bytes -= wanted;
    } else {
      Dim& outer = rest.dims.front();
      const std::int64_t unit = rest.size() / outer.count;
      const std::int64_t taken = std::max<std::int64_t>(1, wanted / unit);
      first.dims.front().count = taken;
      rest.offset += taken * outer.stride;
      outer.count -= taken;
      drop_single(first);
      drop_single(rest);
    }
    pieces_.push_back(std::move(rest));
    pieces_.push_back(std::move(first));
  }

 private:
  static void drop_single(Block& nest) {
    if (nest.dims.front().count == 1) nest.dims.erase(nest.dims.begin());
  }
  std::span<const Block> blocks_;
  std::vector<Block> pieces_;  // in reverse order
};

// A nest as a number system: byte p of its sequence lies at the sum of digit x stride. The weights of the digits are 1,
// block size, block size x innermost count, …
class Digits {
 public:
  explicit Digits(const Block& nest) : nest_(nest), next_(nest.bytes), dim_(nest.dims.size()) {}
  std::int64_t next_weight() const { return next_; }  // weight at which the next dimension begins
  /// The distance in memory of two bytes that are `step` apart in the sequence, within the current digit.
  std::int64_t stride(std::int64_t step) const { return stride_ * (step / weight_); }
  void advance() {
    const Dim& dim = nest_.dims[--dim_];
    weight_ = next_;
    stride_ = dim.stride;
    next_ *= dim.count;
  }

 private:
  const Block& nest_;
  std::int64_t weight_ = 1;
  std::int64_t stride_ = 1;
  std::int64_t next_;
  std::size_t dim_;  // dimensions not yet entered
};

// Appends the pair as one nest, if the weights of both sides together, sorted, divide each other in turn.
bool refine(const Block& src, const Block& dst, Fold& fold) {
  const std::int64_t size = src.size();
  Digits src_digits(src);
  Digits dst_digits(dst);
  std::array<Fold::Step, 2 * kMaxDims + 2> steps;  // filled from the back: innermost first
  std::size_t begin = steps.size();
  const std::int64_t block = std::min(src.bytes, dst.bytes);
  for (std::int64_t weight = block; weight < size;) {
    if (src_digits.next_weight() == weight) src_digits.advance();
    if (dst_digits.next_weight() == weight) dst_digits.advance();
    const std::int64_t next = std::min(src_digits.next_weight(), dst_digits.next_weight());
    if (next % weight != 0) return false;
    steps[--begin] = {next / weight, {src_digits.stride(weight), dst_digits.stride(weight)}};
    weight = next;
  }
  fold.nest({src.offset, dst.offset}, block, std::span(steps).subspan(begin));
  return true;
}

constexpr std::int64_t kMuch = 1024;

// Calls `take(copies)` for what is settled, each time that it is much.
template <class Take>
std::vector<StridedCopy> zipped(const Layout& src, const Layout& dst, const Take& take) {
  if (src.size() != dst.size())
    throw Error(fmt::format("zip: the source ({}) names {} bytes and the destination ({}) {}; they must be equal",
                            src.describe(), src.size(), dst.describe(), dst.size()));
  if (dst.overlaps())
    throw Error(fmt::format("zip: the destination ({}) names a byte twice; only a source may", dst.describe()));
  Fold fold("zip");
  Side from(src);
  Side to(dst);
  while (!from.empty()) {
    const std::int64_t from_size = from.next_size();
    const std::int64_t to_size = to.next_size();
    if (from_size == to_size && refine(from.next(), to.next(), fold)) {
      from.pop();
      to.pop();
    } else if (from_size > to_size || (from_size == to_size && !from.next().dims.empty())) {
      from.cut(from_size == to_size ? 1 : to_size);
    } else {
      to.cut(from_size);
    }
    if (fold.settled() >= kMuch) take(fold);
  }
  return fold.finish();
}

// Walks through the runs of a list.
class Walk {
 public:
  explicit Walk(const CellList& cells) : cells_(cells) { enter(); }
  bool ended() const { return run_ == cells_.kept_runs(); }
  std::int64_t cell() const { return left_.begin; }
  std::int64_t left() const { return left_.count; }  // in the run
  void advance(std::int64_t count) {
    left_.begin += count;
    left_.count -= count;
    if (left_.count > 0) return;
    ++run_;
    enter();
  }

 private:
  void enter() {
    if (!ended()) left_ = cells_.kept_run(run_);
  }
  const CellList& cells_;
  std::int64_t run_ = 0;
  CellRun left_;
};

// Lists of equally large elements are taken in step: the bytes come in the order of the layouts' sequences, so what
// they fold to is the same.
template <class Take>
std::vector<StridedCopy> zipped(const Elements& src, const Elements& dst, const Take& take) {
  const bool in_step =
      src.listed() && dst.listed() && src.size() == dst.size() && src.element().size() == dst.element().size();
  if (!in_step) return zipped(src.layout(), dst.layout(), take);
  if (src.size() == 0) return {};
  const std::vector<StridedCopy> element = zip(src.element(), dst.element());
  const std::int64_t from_extent = src.element().extent();
  const std::int64_t to_extent = dst.element().extent();
  Fold fold("zip");
  const auto add = [&](const Fold::Offsets& at) {
    for (const StridedCopy& copy : element) {
      std::array<Fold::Step, kMaxDims> steps;
      const auto dims = static_cast<std::size_t>(copy.ndims);
      for (std::size_t d = 0; d < dims; ++d)
        steps[d] = {copy.dims[d].count, {copy.dims[d].src_stride, copy.dims[d].dst_stride}};
      fold.nest({at[0] + copy.src_offset, at[1] + copy.dst_offset}, copy.block, {steps.data(), dims});
    }
  };
  Walk from(src.cells());
  Walk to(dst.cells());
  while (!from.ended()) {
    const std::int64_t count = std::min(from.left(), to.left());
    const Fold::Offsets at{src.offset() + from.cell() * from_extent, dst.offset() + to.cell() * to_extent};
    fold.repeat({count, {from_extent, to_extent}}, [&](const Fold::Offsets& moved) {
      add({at[0] + moved[0], at[1] + moved[1]});
    });
    from.advance(count);
    to.advance(count);
    if (fold.settled() >= kMuch) take(fold);
  }
  return fold.finish();
}

}  // namespace

std::vector<StridedCopy> zip(const Layout& src, const Layout& dst) {
  return zipped(src, dst, [](const Fold&) {});
}

std::vector<StridedCopy> zip(const Elements& src, const Elements& dst) {
  return zipped(src, dst, [](const Fold&) {});
}

std::vector<StridedCopy> zip_with_lists(const Elements& src, const Elements& dst) {
  ListMaker lists;
  const auto rest = zipped(src, dst, [&](Fold& fold) { lists.add(fold.take_settled()); });
  lists.add(rest);
  return lists.finish();
}

}  // namespace tasuki
