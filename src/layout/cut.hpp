// Parts of a strided copy, and the bytes that it touches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// From the first to the last byte that a copy touches on one side, as offsets from that side's base.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  ///< past the last; equal to `begin` if nothing is touched
  bool meets(const ByteRange& other) const { return std::max(begin, other.begin) < std::min(end, other.end); }
  void include(const ByteRange& other);
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
ByteRange read_range(const StridedCopy& copy);
ByteRange written_range(const StridedCopy& copy);

/// Steps `begin` to `end` (exclusive) of the outermost dimension, which stays even if it has one step. The copy must
/// have a dimension.
StridedCopy steps_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end);
/// Bytes `begin` to `end` (exclusive) of every block.
StridedCopy bytes_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end);
/// Without an outermost dimension of one step.
StridedCopy without_single_step(const StridedCopy& copy);

/// Bytes at multiples of which blocks are cut: whole elements, and what is aligned stays so.
constexpr std::int64_t kCutUnit = 64;

/// Adds the copy in pieces of at most `most` bytes, or of one unit, and of about equal size.
void cut_by_bytes(const StridedCopy& copy, std::int64_t most, std::vector<StridedCopy>& pieces);

/// Cuts the copies into `parts` lists of about equal bytes: each copy along its outermost dimension, or a contiguous
/// one at multiples of the unit. A list is empty where there are fewer steps than parts.
std::vector<std::vector<StridedCopy>> cut_in_parts(std::span<const StridedCopy> copies, std::int64_t parts);

}  // namespace tasuki
