// What is equal in memory once: see share.hpp.
#include "plan/share.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace tasuki {

void share(Plan& plan) {
  std::map<std::string_view, Name> names;
  for (Buffer& buffer : plan.buffers) buffer.name = names.try_emplace(buffer.name.view(), buffer.name).first->second;

  const auto before = [](std::span<const CopyDim> a, std::span<const CopyDim> b) {
    return std::ranges::lexicographical_compare(a, b, [](const CopyDim& x, const CopyDim& y) {
      return std::tie(x.count, x.src_stride, x.dst_stride) < std::tie(y.count, y.src_stride, y.dst_stride);
    });
  };
  std::map<std::span<const CopyDim>, CopyDims, decltype(before)> known(before);
  for (StridedCopy& copy : plan.copies) {
    std::span<const CopyDim> dims(std::as_const(copy.dims));
    while (std::ssize(dims) > copy.ndims && dims.back() == CopyDim{}) dims = dims.first(dims.size() - 1);
    const auto entry = known.find(dims);
    if (entry != known.end()) {
      copy.dims = entry->second;
    } else {
      copy.dims = CopyDims(dims);
      known.emplace(std::as_const(copy.dims), copy.dims);
    }
  }
}

}  // namespace tasuki
