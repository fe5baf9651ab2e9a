// TouchedByPeers: see touched_by_peers.hpp.
#include "predict/touched_by_peers.hpp"

#include <algorithm>

namespace tasuki::detail {

namespace {

const Buffer& buffer_of(const Plan& plan, std::int32_t buffer) {
  return plan.buffers[static_cast<std::size_t>(buffer)];
}

// All that the command touches, in all chunks.
template <class RangeOf>
ByteRange touched(const Plan& plan, const Command& c, std::int64_t step, const RangeOf& range_of) {
  ByteRange all;
  for (std::int32_t i = c.first_copy; i < c.first_copy + c.copy_count; ++i)
    all.include(range_of(plan.copies[static_cast<std::size_t>(i)]));
  const std::int64_t further = step * (chunks(plan, c) - 1);
  return {all.begin + std::min<std::int64_t>(further, 0), all.end + std::max<std::int64_t>(further, 0)};
}

ByteRange loaded(const Plan& plan, const Command& c) {
  return touched(plan, c, c.src_step, read_range);
}

ByteRange stored(const Plan& plan, const Command& c) {
  return touched(plan, c, c.dst_step, written_range);
}

}  // namespace

void TouchedByPeers::note(const Plan& plan, const Command& c) {
  const auto add = [&](Ranges& ranges, std::int32_t buffer, const ByteRange& range) {
    const Buffer& b = buffer_of(plan, buffer);
    // The lines of a ring are part of its path's price.
    if (b.rank != plan.rank && b.purpose == Purpose::user) ranges[{b.rank, key_of(b)}].push_back(range);
  };
  add(loaded_, c.src, loaded(plan, c));
  add(stored_, c.dst, stored(plan, c));
}

bool TouchedByPeers::meets(const Ranges& ranges, const Plan& plan, std::int32_t buffer, const ByteRange& range) {
  if (ranges.empty()) return false;
  const Buffer& b = buffer_of(plan, buffer);
  const auto found = ranges.find({b.rank, key_of(b)});
  return found != ranges.end() && std::any_of(found->second.begin(), found->second.end(),
                                              [&](const ByteRange& one) { return one.meets(range); });
}

bool TouchedByPeers::fetches(const Plan& plan, const Command& c) const {
  if (loaded_.empty() && stored_.empty()) return false;
  const ByteRange from = loaded(plan, c);
  // What a reduction adds to has been stored to before, by this rank or by another one.
  return meets(loaded_, plan, c.src, from) || meets(stored_, plan, c.src, from) ||
         meets(c.verb == Verb::reduce ? stored_ : loaded_, plan, c.dst, stored(plan, c));
}

}  // namespace tasuki::detail
