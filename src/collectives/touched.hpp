// Touched: bytes of ranks' buffers, as ranges that are joined where they meet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace tasuki {

class Touched {
 public:
  explicit Touched(int ranks) : ranges_(static_cast<std::size_t>(ranks)) {}

  /// Whether any of these bytes are among them.
  bool has(int rank, int buffer, std::int64_t begin, std::int64_t end) const {
    const auto& all = ranges_[static_cast<std::size_t>(rank)];
    const auto after = all.lower_bound({buffer, end});
    if (after == all.begin()) return false;
    const auto& [key, its_end] = *std::prev(after);
    return key.first == buffer && its_end > begin;
  }

  void add(int rank, int buffer, std::int64_t begin, std::int64_t end) {
    auto& all = ranges_[static_cast<std::size_t>(rank)];
    auto at = all.upper_bound({buffer, end});
    while (at != all.begin()) {
      const auto before = std::prev(at);
      if (before->first.first != buffer || before->second < begin) break;
      begin = std::min(begin, before->first.second);
      end = std::max(end, before->second);
      at = all.erase(before);
    }
    all[{buffer, begin}] = end;
  }

 private:
  // per rank: by buffer and first byte, the end
  std::vector<std::map<std::pair<int, std::int64_t>, std::int64_t>> ranges_;
};

}  // namespace tasuki
