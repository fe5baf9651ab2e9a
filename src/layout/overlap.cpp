// Whether a layout names a byte twice. Exact. Nests are expanded into runs only if the search would take too long.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "layout/checked.hpp"
#include "tasuki/error.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {
namespace {

// Two runs of one nest, or of two nests, overlap if integers n_i in given ranges bring `start + sum n_i * stride_i`
// between two bounds. The n_i are tried from the largest stride down: what the smaller strides can still add leaves few
// choices for each.
class Search {
 public:
  /// Adds an unknown in [first, last]. With `share`, an unknown with the same stride as an earlier one is merged with
  /// it.
  void add(std::int64_t stride, std::int64_t first, std::int64_t last, bool share) {
    if (stride < 0) {
      stride = -stride;
      std::swap(first, last);
      first = -first;
      last = -last;
    }
    for (int i = 0; share && i < used_; ++i)
      if (unknowns_[i].stride == stride) {
        unknowns_[i].first += first;
        unknowns_[i].last += last;
        return;
      }
    unknowns_[used_++] = {stride, first, last};
  }

  /// Is there a choice with `above < start + sum < below`? With `nonzero`, other than all zeros. Empty: too many to
  /// try.
  std::optional<bool> reaches(Wide start, Wide above, Wide below, bool nonzero) {
    std::sort(unknowns_.begin(), unknowns_.begin() + used_,
              [](const Unknown& a, const Unknown& b) { return a.stride > b.stride; });
    rest_low_[used_] = rest_high_[used_] = 0;
    for (int i = used_; i-- > 0;) {
      rest_low_[i] = rest_low_[i + 1] + unknowns_[i].first * unknowns_[i].stride;
      rest_high_[i] = rest_high_[i + 1] + unknowns_[i].last * unknowns_[i].stride;
    }
    above_ = above;
    below_ = below;
    trials_ = 0;
    const bool found = descend(0, start, nonzero);
    if (trials_ > kMaxTrials) return std::nullopt;
    return found;
  }

 private:
  static constexpr std::int64_t kMaxTrials = 1 << 22;
  struct Unknown {
    Wide stride = 0;
    Wide first = 0;
    Wide last = 0;
  };

  static Wide divide_down(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

  // `zeros`: all unknowns so far are zero, and not all may be. A negative next one would only mirror a positive one.
  bool descend(int level, Wide sum, bool zeros) {
    if (++trials_ > kMaxTrials) return false;
    if (level == used_) return !zeros && above_ < sum && sum < below_;
    const auto [stride, lowest, highest] = unknowns_[level];
    Wide first = zeros ? 0 : lowest;
    Wide last = highest;
    if (stride > 0) {
      first = std::max(first, divide_down(above_ - sum - rest_high_[level + 1], stride) + 1);
      last = std::min(last, -divide_down(-(below_ - sum - rest_low_[level + 1]), stride) - 1);
    }
    for (Wide n = first; n <= last; ++n)
      if (descend(level + 1, sum + n * stride, zeros && n == 0) || trials_ > kMaxTrials) return true;
    return false;
  }

  std::array<Unknown, 2 * kMaxDims> unknowns_;
  std::array<Wide, 2 * kMaxDims + 1> rest_low_{};
  std::array<Wide, 2 * kMaxDims + 1> rest_high_{};
  int used_ = 0;
  Wide above_ = 0;
  Wide below_ = 0;
  std::int64_t trials_ = 0;
};

std::optional<bool> meets_itself(const Block& block) {
  Search search;
  for (const Dim& dim : block.dims) search.add(dim.stride, -(dim.count - 1), dim.count - 1, false);
  return search.reaches(0, -Wide{block.bytes}, block.bytes, true);
}

std::optional<bool> meet(const Block& a, const Block& b) {
  Search search;
  for (const Dim& dim : a.dims) search.add(dim.stride, 0, dim.count - 1, true);
  for (const Dim& dim : b.dims) search.add(dim.stride, -(dim.count - 1), 0, true);
  return search.reaches(Wide{a.offset} - b.offset, -Wide{a.bytes}, b.bytes, false);
}

struct Interval {
  std::int64_t first = 0;
  std::int64_t last = 0;  // one past the end
  const Block* block = nullptr;
};

Interval bounds_of(const Block& block) {
  Interval interval{block.offset, block.offset + block.bytes, &block};
  for (const Dim& dim : block.dims) {
    const std::int64_t span = (dim.count - 1) * dim.stride;
    (span < 0 ? interval.first : interval.last) += span;
  }
  return interval;
}

void sort_by_start(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.first < b.first; });
}

bool disjoint(std::vector<Interval>& intervals) {
  sort_by_start(intervals);
  for (std::size_t i = 1; i < intervals.size(); ++i)
    if (intervals[i].first < intervals[i - 1].last) return false;
  return true;
}

void append_runs(const Block& block, std::size_t dim, std::int64_t offset, std::vector<Interval>& out) {
  if (dim == block.dims.size()) {
    out.push_back({offset, offset + block.bytes, &block});
    return;
  }
  for (std::int64_t i = 0; i < block.dims[dim].count; ++i)
    append_runs(block, dim + 1, offset + i * block.dims[dim].stride, out);
}

// The last resort: expands all runs, which decides whatever fits into memory.
bool runs_meet(const Layout& layout) {
  constexpr std::int64_t kMaxRuns = std::int64_t{1} << 27;
  if (layout.runs() > kMaxRuns)
    throw Error(fmt::format("Layout::overlaps: cannot decide for {} runs ({}); describe the layout in fewer pieces",
                            layout.runs(), layout.describe()));
  std::vector<Interval> runs;
  runs.reserve(static_cast<std::size_t>(layout.runs()));
  for (const Block& block : layout.blocks()) append_runs(block, 0, block.offset, runs);
  return !disjoint(runs);
}

// Compares nests whose bounds intersect, pair by pair.
std::optional<bool> nests_meet(const std::vector<Interval>& sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i)
    for (std::size_t j = i + 1; j < sorted.size() && sorted[j].first < sorted[i].last; ++j) {
      const std::optional<bool> answer = meet(*sorted[i].block, *sorted[j].block);
      if (!answer || *answer) return answer;
    }
  return false;
}

}  // namespace

bool Layout::overlaps() const {
  constexpr std::int64_t kFewRuns = 1 << 20;  // sorting this many is faster than comparing a long list pair by pair
  std::vector<Interval> bounds;
  bounds.reserve(blocks_.size());
  for (const Block& block : blocks_) {
    const std::optional<bool> answer = meets_itself(block);
    if (!answer) return runs_meet(*this);
    if (*answer) return true;
    bounds.push_back(bounds_of(block));
  }
  if (disjoint(bounds)) return false;
  if (blocks_.size() > 2 && runs() <= kFewRuns) return runs_meet(*this);
  const std::optional<bool> answer = nests_meet(bounds);
  return answer ? *answer : runs_meet(*this);
}

}  // namespace tasuki
