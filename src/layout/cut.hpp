// Parts of a strided copy, and the bytes that it touches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// The range from the first to the last byte that a strided copy touches on one side, as offsets from that side's base.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  ///< past the last; equal to `begin` if nothing is touched
  bool meets(const ByteRange& other) const { return std::max(begin, other.begin) < std::min(end, other.end); }
  void include(const ByteRange& other);
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
ByteRange read_range(const StridedCopy& copy);
ByteRange written_range(const StridedCopy& copy);

/// Steps `begin` to `end` (exclusive) of the outermost dimension. The dimension stays, even with one step. The strided
/// copy must have a dimension.
StridedCopy steps_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end);
/// Step `i` of the outermost dimension, without that dimension.
StridedCopy step_of(const StridedCopy& copy, std::int64_t i);
/// Bytes `begin` to `end` (exclusive) of every block.
StridedCopy bytes_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end);
/// The same strided copy; if its outermost dimension has one step, without that dimension.
StridedCopy without_single_step(const StridedCopy& copy);

/// Blocks are cut at multiples of this many bytes: a multiple of every element's size, and it keeps alignment.
constexpr std::int64_t kCutUnit = 64;

/// Adds the strided copy to `pieces`, cut into pieces of about equal size and of at most `most` bytes (or one unit).
void cut_by_bytes(const StridedCopy& copy, std::int64_t most, std::vector<StridedCopy>& pieces,
                  std::int64_t unit = kCutUnit);

/// Cuts the strided copies into `parts` lists of about equal bytes: each along its outermost dimension, or, if it is
/// contiguous, at multiples of the unit. If there are fewer steps than parts, some lists are empty.
std::vector<std::vector<StridedCopy>> cut_in_parts(std::span<const StridedCopy> copies, std::int64_t parts);

}  // namespace tasuki
