// SpareRegions: regions of a rank's shared memory that nobody uses any more. The system takes half a millisecond to
// make a mebibyte of shared memory and as long to take it back, so some of it is kept for the next block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace tasuki {

struct SpareRegion {
  std::int64_t begin = 0;  ///< in the file
  std::int64_t bytes = 0;
  std::shared_ptr<std::byte> base;  ///< still mapped; holds what its last user left there
};

class SpareRegions {
 public:
  static constexpr std::int64_t kMost = 64 << 20;  ///< bytes that are kept at most

  /// Of the regions of `bytes` to `bytes + more` the smallest, if there is one.
  std::optional<SpareRegion> take(std::int64_t bytes, std::int64_t more);
  /// Keeps the region. Calls `give_back` for those that are then too many, the oldest first; a region that is larger
  /// than all that may be kept is given back at once.
  void keep(SpareRegion region, const std::function<void(SpareRegion&)>& give_back);
  /// Keeps none. True if there were any.
  bool clear(const std::function<void(SpareRegion&)>& give_back);

 private:
  std::vector<SpareRegion> regions_;  // the oldest first
  std::int64_t bytes_ = 0;
};

}  // namespace tasuki
