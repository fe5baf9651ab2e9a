// Parts of a strided copy: see cut.hpp.
#include "layout/cut.hpp"

#include <algorithm>

namespace tasuki {

namespace {

ByteRange range(const StridedCopy& copy, std::int64_t offset, std::int64_t StridedCopy::Dim::*stride,
                const OffsetList& list) {
  ByteRange all{offset, offset};
  if (!list.empty()) all = {offset + list.least(), offset + list.most()};
  for (int d = 0; d < copy.ndims; ++d) {
    const auto& dim = copy.dims[static_cast<std::size_t>(d)];
    const std::int64_t reach = (dim.count - 1) * dim.*stride;
    (reach < 0 ? all.begin : all.end) += reach;
  }
  all.end += copy.block;
  return copy.blocks() == 0 ? ByteRange{offset, offset} : all;
}

}  // namespace

void ByteRange::include(const ByteRange& other) {
  if (other.begin == other.end) return;
  if (begin == end) {
    *this = other;
    return;
  }
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
}

ByteRange read_range(const StridedCopy& copy) {
  return range(copy, copy.src_offset, &StridedCopy::Dim::src_stride, copy.src_list);
}

ByteRange written_range(const StridedCopy& copy) {
  return range(copy, copy.dst_offset, &StridedCopy::Dim::dst_stride, copy.dst_list);
}

StridedCopy steps_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end) {
  StridedCopy part = copy;
  part.src_offset += begin * copy.dims[0].src_stride;
  part.dst_offset += begin * copy.dims[0].dst_stride;
  part.dims[0].count = end - begin;
  if (!copy.listed()) return part;
  part.src_list = copy.src_list.part(begin, end);
  part.dst_list = copy.dst_list.part(begin, end);
  return part;
}

StridedCopy step_of(const StridedCopy& copy, std::int64_t i) {
  StridedCopy step = copy;
  step.src_offset = copy.src_of_step(i);
  step.dst_offset = copy.dst_of_step(i);
  step.src_list = {};
  step.dst_list = {};
  step.dims = CopyDims(copy.nest().subspan(1));
  --step.ndims;
  return step;
}

StridedCopy bytes_of(const StridedCopy& copy, std::int64_t begin, std::int64_t end) {
  StridedCopy part = copy;
  part.src_offset += begin;
  part.dst_offset += begin;
  part.block = end - begin;
  return part;
}

StridedCopy without_single_step(const StridedCopy& copy) {
  return copy.ndims == 0 || copy.dims[0].count != 1 ? copy : step_of(copy, 0);
}

void cut_by_bytes(const StridedCopy& copy, std::int64_t most, std::vector<StridedCopy>& pieces, std::int64_t unit) {
  if (copy.bytes() <= most) {
    pieces.push_back(copy);
    return;
  }
  const bool steps = copy.ndims > 0;
  const std::int64_t count = steps ? copy.dims[0].count : (copy.block + unit - 1) / unit;
  const std::int64_t fit = std::max<std::int64_t>(1, most / (steps ? copy.bytes() / count : unit));
  const std::int64_t parts = (count + fit - 1) / fit;
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t begin = count * p / parts;
    const std::int64_t end = count * (p + 1) / parts;
    if (steps) {
      cut_by_bytes(without_single_step(steps_of(copy, begin, end)), most, pieces, unit);
    } else {
      pieces.push_back(bytes_of(copy, begin * unit, std::min(end * unit, copy.block)));
    }
  }
}

std::vector<std::vector<StridedCopy>> cut_in_parts(std::span<const StridedCopy> copies, std::int64_t parts) {
  std::vector<std::vector<StridedCopy>> result(static_cast<std::size_t>(parts));
  for (const StridedCopy& copy : copies) {
    const bool steps = copy.ndims > 0;
    const std::int64_t count = steps ? copy.dims[0].count : (copy.block + kCutUnit - 1) / kCutUnit;
    for (std::int64_t p = 0; p < parts; ++p) {
      const std::int64_t begin = count * p / parts;
      const std::int64_t end = count * (p + 1) / parts;
      if (begin == end) continue;
      result[static_cast<std::size_t>(p)].push_back(
          steps ? steps_of(copy, begin, end) : bytes_of(copy, begin * kCutUnit, std::min(end * kCutUnit, copy.block)));
    }
  }
  return result;
}

}  // namespace tasuki
