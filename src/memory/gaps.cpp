// Gaps: first fit. Gaps are kept by offset, so that adjacent ones are found and merged.
#include "memory/gaps.hpp"

#include <iterator>

namespace tasuki {

std::int64_t Gaps::aligned(std::int64_t offset, std::int64_t alignment) const {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base_)) + offset;
  return offset + (alignment - address % alignment) % alignment;
}

Gaps::Map::const_iterator Gaps::first_fit(std::int64_t bytes, std::int64_t alignment) const {
  auto gap = gaps_.begin();
  while (gap != gaps_.end() && aligned(gap->first, alignment) - gap->first > gap->second - bytes) ++gap;
  return gap;
}

bool Gaps::fits(std::int64_t bytes, std::int64_t alignment) const {
  return first_fit(bytes, alignment) != gaps_.end();
}

std::int64_t Gaps::take(std::int64_t bytes, std::int64_t alignment) {
  const auto gap = first_fit(bytes, alignment);
  const auto [begin, size] = *gap;
  const std::int64_t offset = aligned(begin, alignment);
  gaps_.erase(gap);
  if (offset > begin) gaps_[begin] = offset - begin;
  if (offset + bytes < begin + size) gaps_[offset + bytes] = begin + size - (offset + bytes);
  return offset;
}

void Gaps::give_back(std::int64_t offset, std::int64_t bytes) {
  const auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + bytes) {
    bytes += next->second;
    gaps_.erase(next);
  }
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  if (bytes > 0) gaps_[offset] = bytes;
}

}  // namespace tasuki
