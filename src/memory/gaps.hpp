// Gaps: an allocator for one range of memory. It keeps the free space as a list of gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tasuki {

/// Offsets are relative to `base`. Alignments apply to addresses, not to offsets.
class Gaps {
 public:
  Gaps() = default;
  Gaps(std::byte* base, std::int64_t size) : base_(base) { give_back(0, size); }

  /// Whether a block of this size and alignment can be taken.
  bool fits(std::int64_t bytes, std::int64_t alignment) const;
  /// Takes a block from the first gap that is large enough; returns its offset. `fits` must be true.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment);
  void give_back(std::int64_t offset, std::int64_t bytes);  ///< Frees a block; adjacent gaps become one.

 private:
  using Map = std::map<std::int64_t, std::int64_t>;  // offset -> bytes
  std::int64_t aligned(std::int64_t offset, std::int64_t alignment) const;
  Map::const_iterator first_fit(std::int64_t bytes, std::int64_t alignment) const;

  std::byte* base_ = nullptr;
  Map gaps_;
};

}  // namespace tasuki
