// TouchedByPeers: which bytes of ranks' memory on hosts other ranks load or store in an epoch. Their lines lie in those
// ranks' caches then, and who owns the memory gets them from there before it loads them itself, or stores to them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "layout/cut.hpp"
#include "plan/label.hpp"
#include "tasuki/plan.hpp"

namespace tasuki::detail {

class TouchedByPeers {
 public:
  /// `c` loads from another rank's memory, or stores to it.
  void note(const Plan& plan, const Command& c);
  /// Whether `c`, which moves bytes within its rank, has to get lines from another rank's cache.
  bool fetches(const Plan& plan, const Command& c) const;

 private:
  using Ranges = std::map<std::pair<std::int32_t, BufferKey>, std::vector<ByteRange>>;  // [rank, buffer]
  static bool meets(const Ranges& ranges, const Plan& plan, std::int32_t buffer, const ByteRange& range);

  Ranges loaded_, stored_;
};

}  // namespace tasuki::detail
