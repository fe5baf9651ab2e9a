// Lists: irregular runs of strided copies as few copies whose steps lie at listed offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

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
  bool fits(const StridedCopy& step);
  StridedCopy listed() const;
  void close();

  std::vector<StridedCopy> all_;
  // The list that grows: its steps, and the copies that they are of.
  StridedCopy step_;
  std::vector<std::int64_t> src_, dst_;
  std::int64_t longest_ = 0;
  std::vector<StridedCopy> few_;  // the first ones, in case there are no more
  std::int64_t count_ = 0;
};

inline std::vector<StridedCopy> with_lists(std::span<const StridedCopy> copies) {
  ListMaker lists;
  lists.add(copies);
  return lists.finish();
}

/// `zip`, with lists. Takes memory for the lists, but not for a copy of each run.
std::vector<StridedCopy> zip_with_lists(const Layout& src, const Layout& dst);

/// Appends the steps of a copy with lists, each as a copy without.
void append_steps(const StridedCopy& copy, std::vector<StridedCopy>& copies);

}  // namespace tasuki
