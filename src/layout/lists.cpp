// Lists: see lists.hpp.
#include "layout/lists.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "layout/cut.hpp"
#include "layout/nest_loop.hpp"

namespace tasuki {

namespace {

// A dimension of fewer steps is one by accident, as of two runs, which are always some stride apart: a list takes its
// steps one by one. A run is cut into fewer than twice as many of a list's blocks.
constexpr std::int64_t kFewSteps = 8;
constexpr std::int64_t kLeastBlock = 2;  // bytes: runs are not cut into smaller blocks
constexpr std::int64_t kFewCopies = 4;   // fewer stay as they are

// Whether offsets are a stride apart.
bool regular(const GrowingOffsets& offsets) {
  for (std::int64_t i = 2; i < offsets.size(); ++i)
    if (offsets[i] - offsets[i - 1] != offsets[1] - offsets[0]) return false;
  return true;
}

}  // namespace

void GrowingOffsets::push_back(std::int64_t offset) {
  using Near = std::numeric_limits<std::int32_t>;
  if (empty()) first_ = offset;
  std::int64_t away = 0;
  const bool near =
      far_.empty() && !__builtin_sub_overflow(offset, first_, &away) && away >= Near::min() && away <= Near::max();
  if (near) return near_.push_back(static_cast<std::int32_t>(away));
  for (const std::int32_t one : near_) far_.push_back(first_ + one);
  near_.clear();
  far_.push_back(offset);
}

std::vector<std::int64_t> GrowingOffsets::take() {
  std::vector<std::int64_t> relative;
  relative.reserve(static_cast<std::size_t>(size()));
  for (; !near_.empty(); near_.pop_front()) relative.push_back(near_.front());
  for (; !far_.empty(); far_.pop_front()) relative.push_back(far_.front() - first_);
  return relative;
}

// Takes the copy if it consists of steps like those that are there.
bool ListMaker::take(const StridedCopy& copy) {
  if (copy.listed()) return false;
  int outer = 0;
  while (outer < copy.ndims && copy.dims[static_cast<std::size_t>(outer)].count < kFewSteps) ++outer;
  if (copy.ndims - outer >= kMaxDims) return false;
  const std::span<const CopyDim> dims = copy.nest();
  const std::span<const CopyDim> inside = dims.subspan(static_cast<std::size_t>(outer));
  if (count_ == 0) {
    step_ = {};
    step_.block = copy.block;
    step_.ndims = copy.ndims - outer;
    step_.dims = CopyDims(inside);
    longest_ = copy.block;
  } else if (!fits(copy.block, inside)) {
    return false;
  }
  const Nest steps{copy.src_offset, copy.dst_offset, dims.first(static_cast<std::size_t>(outer))};
  for_each_offset(steps, [&](std::int64_t src, std::int64_t dst) {
    for (std::int64_t done = 0; done < copy.block; done += step_.block) {
      src_.push_back(src + done);
      dst_.push_back(dst + done);
    }
  });
  longest_ = std::max(longest_, copy.block);
  if (count_ < kFewCopies) few_.push_back(copy);
  ++count_;
  return true;
}

// Whether a step is like those that are there, which may be cut for it.
bool ListMaker::fits(std::int64_t block, std::span<const CopyDim> dims) {
  if (!std::ranges::equal(dims, step_.nest())) return false;
  if (block == step_.block) return true;
  if (!dims.empty()) return false;
  const std::int64_t unit = std::gcd(block, step_.block);
  if (unit < kLeastBlock || std::max(longest_, block) / unit > kFewSteps) return false;
  for (auto* offsets : {&src_, &dst_}) {
    if (unit == step_.block) break;
    GrowingOffsets cut;
    for (std::int64_t i = 0; i < offsets->size(); ++i)
      for (std::int64_t done = 0; done < step_.block; done += unit) cut.push_back((*offsets)[i] + done);
    *offsets = std::move(cut);
  }
  step_.block = unit;
  return true;
}

// Takes the offsets: long lists need not be there in all forms at once.
StridedCopy ListMaker::listed() {
  StridedCopy copy = step_;
  std::copy_n(std::as_const(step_.dims).begin(), step_.ndims, copy.dims.begin() + 1);
  copy.dims[0] = {src_.size(), 0, 0};
  ++copy.ndims;
  const auto settle = [](GrowingOffsets& offsets, std::int64_t& offset, std::int64_t& stride, OffsetList& list) {
    offset = offsets.front();
    if (regular(offsets))
      stride = offsets[1] - offsets[0];
    else
      list = OffsetList(offsets.take());
  };
  settle(src_, copy.src_offset, copy.dims[0].src_stride, copy.src_list);
  settle(dst_, copy.dst_offset, copy.dims[0].dst_stride, copy.dst_list);
  return copy.listed() ? copy : reordered(copy);
}

// Ends the list: it, or the few copies that it stands for, are done.
void ListMaker::close() {
  if (count_ < kFewCopies)
    all_.insert(all_.end(), few_.begin(), few_.end());
  else
    all_.push_back(listed());
  count_ = 0;
  few_.clear();
  src_ = {};
  dst_ = {};
}

void ListMaker::add(std::span<const StridedCopy> copies) {
  for (const StridedCopy& copy : copies) {
    if (take(copy)) continue;
    close();
    if (!take(copy)) all_.push_back(copy);
  }
}

std::vector<StridedCopy> ListMaker::finish() {
  close();
  return std::exchange(all_, {});
}

void append_steps(const StridedCopy& copy, std::vector<StridedCopy>& copies) {
  StridedCopy step = step_of(copy, 0);
  for (std::int64_t i = 0; i < copy.dims[0].count; ++i) {
    step.src_offset = copy.src_of_step(i);
    step.dst_offset = copy.dst_of_step(i);
    copies.push_back(step);
  }
}

}  // namespace tasuki
