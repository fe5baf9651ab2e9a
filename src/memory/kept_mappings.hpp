// KeptMappings: regions of other ranks' memory that stay mapped a while after their last use. An operation that is made
// again finds its peers' scratch where it was: a new mapping costs two calls of the system, and a page fault for each
// page of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tasuki {

/// A mapping holds no memory. What its owner gives back to the system is gone here, too, and comes again where the
/// owner makes new memory of the same range of its file.
class KeptMappings {
 public:
  static constexpr std::int64_t kMost = 64 << 20;     ///< bytes that are kept at most
  static constexpr std::ptrdiff_t kMostRegions = 32;  ///< the kernel allows a process a number of mappings

  /// Keeps the region, and lets go of those that are then too many: the ones whose last use is longest ago. A region
  /// that is larger than all that may be kept is not.
  void keep(std::shared_ptr<std::byte> region, std::int64_t bytes) {
    const auto known = std::ranges::find(regions_, region, &Kept::region);
    if (known != regions_.end()) {
      std::rotate(known, known + 1, regions_.end());
      return;
    }
    if (bytes > kMost) return;
    regions_.push_back({std::move(region), bytes});
    bytes_ += bytes;
    while (bytes_ > kMost || std::ssize(regions_) > kMostRegions) {
      bytes_ -= regions_.front().bytes;
      regions_.erase(regions_.begin());
    }
  }
  /// Keeps none. True if there were any.
  bool clear() {
    bytes_ = 0;
    return !std::exchange(regions_, {}).empty();
  }

 private:
  struct Kept {
    std::shared_ptr<std::byte> region;
    std::int64_t bytes = 0;
  };
  std::vector<Kept> regions_;  // the one used last at the end
  std::int64_t bytes_ = 0;
};

}  // namespace tasuki
