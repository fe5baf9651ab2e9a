// OffsetList: numbers of 32 or 64 bits that its copies share.
#include <algorithm>
#include <limits>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

struct OffsetList::Numbers {
  std::int64_t holders = 1;  // counted atomically: a plan may be copied and dropped wherever its ranks run
  std::vector<std::int32_t> narrow;
  std::vector<std::int64_t> wide;
  std::int64_t least = 0;
  std::int64_t most = 0;
};

OffsetList::OffsetList(std::span<const std::int64_t> offsets) {
  if (offsets.empty()) return;
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  numbers_ = new Numbers;
  numbers_->least = *least;
  numbers_->most = *most;
  using Narrow = std::numeric_limits<std::int32_t>;
  if (*least < Narrow::min() || *most > Narrow::max()) {
    numbers_->wide.assign(offsets.begin(), offsets.end());
    return;
  }
  numbers_->narrow.reserve(offsets.size());
  for (const std::int64_t offset : offsets) numbers_->narrow.push_back(static_cast<std::int32_t>(offset));
}

void OffsetList::hold() const noexcept {
  __atomic_fetch_add(&numbers_->holders, 1, __ATOMIC_RELAXED);
}

void OffsetList::drop() noexcept {
  if (__atomic_sub_fetch(&numbers_->holders, 1, __ATOMIC_ACQ_REL) == 0) delete numbers_;
}

std::int64_t OffsetList::size() const {
  if (numbers_ == nullptr) return 0;
  return std::ssize(numbers_->narrow) + std::ssize(numbers_->wide);
}

std::int64_t OffsetList::operator[](std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return numbers_->wide.empty() ? numbers_->narrow[at] : numbers_->wide[at];
}

std::int64_t OffsetList::least() const {
  return numbers_->least;
}

std::int64_t OffsetList::most() const {
  return numbers_->most;
}

const std::int32_t* OffsetList::narrow() const {
  return numbers_ == nullptr || numbers_->narrow.empty() ? nullptr : numbers_->narrow.data();
}

const std::int64_t* OffsetList::wide() const {
  return numbers_ == nullptr || numbers_->wide.empty() ? nullptr : numbers_->wide.data();
}

OffsetList OffsetList::part(std::int64_t begin, std::int64_t end) const {
  if (numbers_ == nullptr || (begin == 0 && end == size())) return *this;
  std::vector<std::int64_t> some;
  some.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) some.push_back((*this)[i]);
  return OffsetList(some);
}

std::int64_t OffsetList::bytes() const {
  if (numbers_ == nullptr) return 0;
  return static_cast<std::int64_t>(sizeof(Numbers) + numbers_->narrow.capacity() * sizeof(std::int32_t) +
                                   numbers_->wide.capacity() * sizeof(std::int64_t));
}

bool OffsetList::equals(const OffsetList& other) const {
  return numbers_->narrow == other.numbers_->narrow && numbers_->wide == other.numbers_->wide;
}

}  // namespace tasuki
