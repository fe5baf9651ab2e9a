// SpareRegions: see spare_regions.hpp.
#include "memory/spare_regions.hpp"

#include <utility>

namespace tasuki {

std::optional<SpareRegion> SpareRegions::take(std::int64_t bytes, std::int64_t more) {
  auto best = regions_.end();
  for (auto it = regions_.begin(); it != regions_.end(); ++it)
    if (it->bytes >= bytes && it->bytes - bytes <= more && (best == regions_.end() || it->bytes < best->bytes))
      best = it;
  if (best == regions_.end()) return std::nullopt;
  SpareRegion found = std::move(*best);
  regions_.erase(best);
  bytes_ -= found.bytes;
  return found;
}

void SpareRegions::keep(SpareRegion region, const std::function<void(SpareRegion&)>& give_back) {
  if (region.bytes > kMost) return give_back(region);
  bytes_ += region.bytes;
  regions_.push_back(std::move(region));
  while (bytes_ > kMost) {
    bytes_ -= regions_.front().bytes;
    give_back(regions_.front());
    regions_.erase(regions_.begin());
  }
}

bool SpareRegions::clear(const std::function<void(SpareRegion&)>& give_back) {
  const bool any = !regions_.empty();
  for (SpareRegion& region : regions_) give_back(region);
  regions_.clear();
  bytes_ = 0;
  return any;
}

}  // namespace tasuki
