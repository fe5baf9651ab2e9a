// Two strided copies that become one: those that touch the same cache lines, and those of which one continues the
// other.
#include <algorithm>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;              // bytes of a cache line
constexpr std::int64_t kFirstLevel = 32 << 10;  // bytes of the first-level cache
// most blocks of a row: its cache lines must still be in the first-level cache when the partner's row follows
constexpr std::int64_t kRow = 512;

// Whether the blocks of b lie between those of a on one side, as those of two moves do that take turns in a ring.
bool take_turns(const StridedCopy& a, const StridedCopy& b) {
  if (a.ndims == 0) return false;
  const auto& inner = a.dims[static_cast<std::size_t>(a.ndims) - 1];
  return (inner.dst_stride == 2 * a.block && b.dst_offset - a.dst_offset == a.block) ||
         (inner.src_stride == 2 * a.block && b.src_offset - a.src_offset == a.block);
}

}  // namespace

std::optional<StridedCopy> fused(const StridedCopy& a, const StridedCopy& b) {
  if (a.listed() || b.listed()) return {};
  if (a.block == b.block && a.ndims == b.ndims && a.ndims < kMaxDims && a.block < kLine && a.dims == b.dims &&
      take_turns(a, b)) {
    StridedCopy pairs = a;
    pairs.dims[static_cast<std::size_t>(pairs.ndims++)] = {2, b.src_offset - a.src_offset, b.dst_offset - a.dst_offset};
    return pairs;
  }
  // At least two dimensions, because the rows of the two copies are taken in turn. Small copies stay in the cache
  // anyway.
  if (a.block != b.block || a.ndims != b.ndims || a.ndims < 2 || a.ndims == kMaxDims) return {};
  if (a.block >= kLine || a.blocks() * 2 * kLine <= kFirstLevel) return {};
  if (!std::equal(a.dims.begin(), a.dims.begin() + a.ndims, b.dims.begin())) return {};
  const auto inner = static_cast<std::size_t>(a.ndims) - 1;
  if (a.dims[inner].count > kRow) return {};
  StridedCopy pair = a;
  pair.dims[inner + 1] = pair.dims[inner];
  pair.dims[inner] = {2, b.src_offset - a.src_offset, b.dst_offset - a.dst_offset};
  ++pair.ndims;
  return pair;
}

std::optional<StridedCopy> continued(const StridedCopy& a, const StridedCopy& b) {
  if (a.ndims != b.ndims || a.listed() || b.listed()) return {};
  const std::int64_t src_step = b.src_offset - a.src_offset;
  const std::int64_t dst_step = b.dst_offset - a.dst_offset;
  StridedCopy whole = a;
  if (a.ndims == 0) {
    if (src_step != a.block || dst_step != a.block) return {};
    whole.block += b.block;
    return whole;
  }
  auto& outer = whole.dims[0];
  if (a.block != b.block || outer.src_stride != b.dims[0].src_stride || outer.dst_stride != b.dims[0].dst_stride) {
    return {};
  }
  if (src_step != outer.count * outer.src_stride || dst_step != outer.count * outer.dst_stride) return {};
  if (!std::equal(a.dims.begin() + 1, a.dims.begin() + a.ndims, b.dims.begin() + 1)) return {};
  outer.count += b.dims[0].count;
  return whole;
}

}  // namespace tasuki
