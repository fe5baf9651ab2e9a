// Packing, unpacking and reordering: makes the strided copies that kernels run.
#include <algorithm>
#include <array>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

// The nest as a strided copy into consecutive bytes (gather) or, with `inverse`, out of consecutive bytes (scatter).
StridedCopy packing(const Block& block, std::int64_t packed_offset, bool inverse) {
  StridedCopy copy;
  copy.block = block.bytes;
  copy.ndims = static_cast<std::int32_t>(block.dims.size());
  (inverse ? copy.dst_offset : copy.src_offset) = block.offset;
  (inverse ? copy.src_offset : copy.dst_offset) = packed_offset;
  std::int64_t packed_stride = block.bytes;
  for (std::size_t i = block.dims.size(); i-- > 0;) {
    const auto [count, stride] = block.dims[i];
    copy.dims[i] =
        inverse ? StridedCopy::Dim{count, packed_stride, stride} : StridedCopy::Dim{count, stride, packed_stride};
    packed_stride *= count;
  }
  return copy;
}

void transfer(const Layout& layout, const std::byte* src, std::byte* dst, bool inverse) {
  std::int64_t packed = 0;
  for (const Block& block : layout.blocks()) {
    const StridedCopy copy = packing(block, packed, inverse);
    select_copy(copy)(copy, src, dst);
    packed += copy.bytes();
  }
}

}  // namespace

void Layout::pack(const void* base, void* packed) const {
  transfer(*this, static_cast<const std::byte*>(base), static_cast<std::byte*>(packed), false);
}

void Layout::unpack(const void* packed, void* base) const {
  transfer(*this, static_cast<const std::byte*>(packed), static_cast<std::byte*>(base), true);
}

StridedCopy reordered(const StridedCopy& copy) {
  if (copy.listed()) return copy;
  StridedCopy result = copy;
  std::array<StridedCopy::Dim, kMaxDims> dims;
  int last = 0;
  for (int i = 0; i < copy.ndims; ++i) {
    StridedCopy::Dim dim = copy.dims[i];
    if (dim.count == 1) continue;
    if (dim.dst_stride < 0) {  // start at the other end
      result.src_offset += (dim.count - 1) * dim.src_stride;
      result.dst_offset += (dim.count - 1) * dim.dst_stride;
      dim.src_stride = -dim.src_stride;
      dim.dst_stride = -dim.dst_stride;
    }
    dims[last++] = dim;
  }
  std::stable_sort(dims.begin(), dims.begin() + last,
                   [](const auto& a, const auto& b) { return a.dst_stride > b.dst_stride; });

  // From the innermost dimension outwards: a dimension that continues the block joins it, and a dimension that
  // continues the one inside it joins that.
  int kept = last;  // dims[kept, last) are final
  for (int i = last; i-- > 0;) {
    const StridedCopy::Dim dim = dims[i];
    const bool innermost = kept == last;
    if (innermost && dim.src_stride == result.block && dim.dst_stride == result.block) {
      result.block *= dim.count;
    } else if (!innermost && dim.src_stride == dims[kept].count * dims[kept].src_stride &&
               dim.dst_stride == dims[kept].count * dims[kept].dst_stride) {
      dims[kept].count *= dim.count;
    } else {
      dims[--kept] = dim;
    }
  }
  result.ndims = last - kept;
  result.dims = CopyDims({dims.begin() + kept, dims.begin() + last});
  return result;
}

}  // namespace tasuki
