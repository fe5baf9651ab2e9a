// See cut.hpp.
#include "cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

Cut Cut::whole(std::int64_t first, std::int64_t end) {
  Cut cut;
  cut.first_ = first;
  cut.end_ = end;
  return cut;
}

Cut Cut::block(std::int64_t first, std::int64_t end, int parts, std::int64_t size) {
  Cut cut = whole(first, end);
  cut.format_ = Format::block;
  cut.parts_ = parts;
  const std::int64_t extent = end - first;
  cut.size_ = size == 0 ? std::max<std::int64_t>((extent + parts - 1) / parts, 1) : size;
  if (cut.size_ < 1) throw Error(fmt::format("the blocks have {} indices; they must have at least 1", size));
  if (cut.size_ < (extent + parts - 1) / parts)
    throw Error(fmt::format("{} blocks of {} indices do not hold the template's {}; give block({}) or more", parts,
                            size, extent, (extent + parts - 1) / parts));
  return cut;
}

Cut Cut::cyclic(std::int64_t first, std::int64_t end, int parts, std::int64_t size) {
  Cut cut = whole(first, end);
  cut.format_ = Format::cyclic;
  cut.parts_ = parts;
  cut.size_ = size == 0 ? 1 : size;
  if (cut.size_ < 1) throw Error(fmt::format("the blocks have {} indices; they must have at least 1", size));
  return cut;
}

Cut Cut::gblock(std::int64_t first, std::int64_t end, const std::vector<std::int64_t>& sizes) {
  Cut cut = whole(first, end);
  cut.format_ = Format::gblock;
  cut.parts_ = static_cast<int>(sizes.size());
  cut.bounds_.push_back(first);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t left = end - cut.bounds_.back();
    if (sizes[i] < 0 || sizes[i] > left)
      throw Error(fmt::format("entry {} of the gblock map is {}; {} indices of the template are left there", i,
                              sizes[i], left));
    cut.bounds_.push_back(cut.bounds_.back() + sizes[i]);
  }
  if (cut.bounds_.back() != end)
    throw Error(fmt::format("the gblock map adds up to {}, but the template has {} indices", cut.bounds_.back() - first,
                            end - first));
  return cut;
}

int Cut::owner(std::int64_t index) const {
  switch (format_) {
    case Format::whole:
      return 0;
    case Format::block:
      return static_cast<int>((index - first_) / size_);
    case Format::cyclic:
      return static_cast<int>((index - first_) / size_ % parts_);
    case Format::gblock:  // of several with equal bounds the one that is not empty
      return static_cast<int>(std::upper_bound(bounds_.begin(), bounds_.end(), index) - bounds_.begin()) - 1;
  }
  return 0;
}

std::int64_t Cut::begin_of(int part) const {
  if (format_ == Format::whole) return part == 0 ? first_ : end_;
  if (format_ == Format::gblock) return bounds_[static_cast<std::size_t>(part)];
  return part == parts_ ? end_ : std::min(end_, first_ + part * size_);
}

std::int64_t Cut::below(int part, std::int64_t index) const {
  index = std::clamp(index, first_, end_);
  if (contiguous()) return std::clamp(index, begin_of(part), begin_of(part + 1)) - begin_of(part);
  const std::int64_t round = size_ * parts_;
  const std::int64_t at = index - first_;
  return at / round * size_ + std::clamp<std::int64_t>(at % round - part * size_, 0, size_);
}

std::int64_t Cut::nth(int part, std::int64_t n) const {
  if (contiguous()) return begin_of(part) + n;
  return first_ + (n / size_ * parts_ + part) * size_ + n % size_;
}

Range Cut::run_after(int part, std::int64_t index) const {
  index = std::max(index, first_);
  Range run;
  if (contiguous()) {
    run = {begin_of(part), begin_of(part + 1)};
  } else {
    const std::int64_t round = size_ * parts_;
    std::int64_t begin = first_ + (index - first_) / round * round + part * size_;
    if (begin + size_ <= index) begin += round;
    run = {std::min(begin, end_), std::min(begin + size_, end_)};
  }
  return run.end <= index ? Range{end_, end_} : run;
}

}  // namespace tasuki::xmp
