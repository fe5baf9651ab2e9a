// OffsetList: numbers of 32 or 64 bits that its copies share. One piece of memory has them and what is known of them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

// The numbers follow it.
struct OffsetList::Numbers {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::int64_t size = 0;
  std::int32_t holders = 1;  // counted atomically: a plan may be copied and dropped wherever its ranks run
  std::int32_t width = 0;    // bytes of a number

  template <class Number>
  Number* numbers() {
    return reinterpret_cast<Number*>(this + 1);
  }
  std::size_t bytes() const { return sizeof(Numbers) + static_cast<std::size_t>(size * width); }
};

OffsetList::OffsetList(std::span<const std::int64_t> offsets) {
  if (offsets.empty()) return;
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  using Narrow = std::numeric_limits<std::int32_t>;
  const bool narrow = *least >= Narrow::min() && *most <= Narrow::max();
  const std::int32_t width = narrow ? sizeof(std::int32_t) : sizeof(std::int64_t);
  void* memory = ::operator new(sizeof(Numbers) + offsets.size() * static_cast<std::size_t>(width));
  numbers_ = new (memory) Numbers{*least, *most, std::ssize(offsets), 1, width};
  if (!narrow) {
    std::ranges::copy(offsets, numbers_->numbers<std::int64_t>());
    return;
  }
  std::ranges::transform(offsets, numbers_->numbers<std::int32_t>(),
                         [](std::int64_t offset) { return static_cast<std::int32_t>(offset); });
}

void OffsetList::hold() const noexcept {
  __atomic_fetch_add(&numbers_->holders, 1, __ATOMIC_RELAXED);
}

void OffsetList::drop() noexcept {
  if (__atomic_sub_fetch(&numbers_->holders, 1, __ATOMIC_ACQ_REL) == 0) ::operator delete(numbers_);
}

std::int64_t OffsetList::size() const {
  return numbers_ == nullptr ? 0 : numbers_->size;
}

std::int64_t OffsetList::operator[](std::int64_t i) const {
  return numbers_->width == sizeof(std::int32_t) ? numbers_->numbers<std::int32_t>()[i]
                                                 : numbers_->numbers<std::int64_t>()[i];
}

std::int64_t OffsetList::least() const {
  return numbers_->least;
}

std::int64_t OffsetList::most() const {
  return numbers_->most;
}

const std::int32_t* OffsetList::narrow() const {
  return numbers_ == nullptr || numbers_->width != sizeof(std::int32_t) ? nullptr : numbers_->numbers<std::int32_t>();
}

const std::int64_t* OffsetList::wide() const {
  return numbers_ == nullptr || numbers_->width != sizeof(std::int64_t) ? nullptr : numbers_->numbers<std::int64_t>();
}

OffsetList OffsetList::part(std::int64_t begin, std::int64_t end) const {
  if (numbers_ == nullptr || (begin == 0 && end == size())) return *this;
  std::vector<std::int64_t> some;
  some.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) some.push_back((*this)[i]);
  return OffsetList(some);
}

std::int64_t OffsetList::bytes() const {
  return numbers_ == nullptr ? 0 : static_cast<std::int64_t>(numbers_->bytes());
}

bool OffsetList::equals(const OffsetList& other) const {
  return numbers_->size == other.numbers_->size && numbers_->width == other.numbers_->width &&
         std::memcmp(numbers_ + 1, other.numbers_ + 1, static_cast<std::size_t>(size() * numbers_->width)) == 0;
}

}  // namespace tasuki
