// Lists: irregular runs of strided copies as few copies whose steps lie at listed offsets.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// Offsets that are added one by one. They take 4 bytes each as long as they lie close to the first one, and growing
/// takes no copy of them.
class GrowingOffsets {
 public:
  void push_back(std::int64_t offset);
  std::int64_t size() const { return std::ssize(near_) + std::ssize(far_); }
  bool empty() const { return size() == 0; }
  std::int64_t front() const { return first_; }
  std::int64_t operator[](std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return far_.empty() ? first_ + near_[at] : far_[at];
  }
  /// Relative to the first one. Empties this: memory is given back as it is read.
  std::vector<std::int64_t> take();

 private:
  std::int64_t first_ = 0;
  std::deque<std::int32_t> near_;  // relative to the first
  std::deque<std::int64_t> far_;
};

/// Makes lists of copies that come in parts: the same copies in the same order, but neighbours that consist of few
/// steps of one shape become one with lists: an offset for each step on a side that is irregular. Runs of lengths that
/// are small multiples of one length are such steps. The copies are as `zip` makes them: what is reordered has its
/// accidental dimensions inside.
class ListMaker {
 public:
  void add(std::span<const StridedCopy> copies);
  /// What all copies have become.
  std::vector<StridedCopy> finish();

 private:
  bool take(const StridedCopy& copy);
  bool fits(std::int64_t block, std::span<const CopyDim> dims);
  StridedCopy listed();
  void close();

  std::vector<StridedCopy> all_;
  // The list that grows: its steps, and the copies that they are of.
  StridedCopy step_;
  GrowingOffsets src_, dst_;
  std::int64_t longest_ = 0;
  std::vector<StridedCopy> few_;  // the first ones, in case there are no more
  std::int64_t count_ = 0;
};

inline std::vector<StridedCopy> with_lists(std::span<const StridedCopy> copies) {
  ListMaker lists;
  lists.add(copies);
  return lists.finish();
}

/// Appends the steps of a copy with lists, each as a copy without.
void append_steps(const StridedCopy& copy, std::vector<StridedCopy>& copies);

}  // namespace tasuki
