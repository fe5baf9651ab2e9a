// Gaps: the free space of a range in which blocks of any size are taken and given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tasuki {

/// Free space as gaps. Offsets are relative to `base`, alignment is that of addresses.
class Gaps {
 public:
  Gaps() = default;
  Gaps(std::byte* base, std::int64_t size) : base_(base) { give_back(0, size); }

  bool fits(std::int64_t bytes, std::int64_t alignment) const;
  /// The offset of `bytes` bytes, first fit; they must fit.
  std::int64_t take(std::int64_t bytes, std::int64_t alignment);
  void give_back(std::int64_t offset, std::int64_t bytes);  ///< Merges with neighbouring gaps.

 private:
  using Map = std::map<std::int64_t, std::int64_t>;  // offset -> bytes
  std::int64_t aligned(std::int64_t offset, std::int64_t alignment) const;
  Map::const_iterator first_fit(std::int64_t bytes, std::int64_t alignment) const;

  std::byte* base_ = nullptr;
  Map gaps_;
};

}  // namespace tasuki
