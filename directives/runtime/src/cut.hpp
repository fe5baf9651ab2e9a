// How one dimension of a template is cut for the nodes along one dimension of a node set: index arithmetic, no ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace tasuki::xmp {

/// Indices first, first + step, ... below `end`.
struct Range {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
  std::int64_t count() const { return end <= first ? 0 : (end - first + step - 1) / step; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Layers below and above.
struct Layers {
  std::int64_t below = 0;
  std::int64_t above = 0;
  friend bool operator==(const Layers&, const Layers&) = default;
};

enum class Format : std::uint8_t { whole, block, cyclic, gblock };

/// Who owns which indices of [first, end). A part is a coordinate of the nodes, from 0. A part may own nothing.
class Cut {
 public:
  Cut() = default;
  /// All of it belongs to every node.
  static Cut whole(std::int64_t first, std::int64_t end);
  /// Blocks of `size` indices, one a part; 0: as few as hold all. Throws `Error` if they do not hold all.
  static Cut block(std::int64_t first, std::int64_t end, int parts, std::int64_t size = 0);
  /// Blocks of `size` indices, dealt out in turn.
  static Cut cyclic(std::int64_t first, std::int64_t end, int parts, std::int64_t size = 1);
  /// `sizes[part]` indices each. Throws `Error` unless they add up to all.
  static Cut gblock(std::int64_t first, std::int64_t end, const std::vector<std::int64_t>& sizes);

  Format format() const { return format_; }
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return end_; }
  int parts() const { return parts_; }
  std::int64_t size() const { return size_; }  ///< of a block; gblock and whole: 0
  bool contiguous() const { return format_ != Format::cyclic; }

  /// The part that owns an index of the range.
  int owner(std::int64_t index) const;
  /// How many indices below `index` the part owns.
  std::int64_t below(int part, std::int64_t index) const;
  /// The part's `n`-th index, which must exist.
  std::int64_t nth(int part, std::int64_t n) const;
  /// Of a contiguous cut: where the part begins; part = parts() gives the end.
  std::int64_t begin_of(int part) const;
  /// The part's next run of adjacent indices that ends after `index`; empty if there is none.
  Range run_after(int part, std::int64_t index) const;

 private:
  Format format_ = Format::whole;
  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
  int parts_ = 1;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> bounds_;  // gblock: parts + 1
};

}  // namespace tasuki::xmp
