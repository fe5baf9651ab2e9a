// OffsetList: numbers of 32 or 64 bits that its copies share. One piece of memory has all of it.
#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

// The numbers follow it.
struct OffsetList::Numbers {
  std::int32_t holders = 1;
  std::int32_t width = 0;  // bytes of a number
  std::int64_t size = 0;

  template <class Number>
  const Number* numbers() const {
    return reinterpret_cast<const Number*>(this + 1);
  }
  bool narrow() const { return width == sizeof(std::int32_t); }
  std::size_t bytes() const { return sizeof(Numbers) + static_cast<std::size_t>(size * width); }
  // Calls `visit` with the numbers, of either form.
  template <class Visit>
  auto visit(const Visit& visit) const {
    const auto count = static_cast<std::size_t>(size);
    return narrow() ? visit(std::span(numbers<std::int32_t>(), count))
                    : visit(std::span(numbers<std::int64_t>(), count));
  }
};

OffsetList::OffsetList(std::span<const std::int64_t> offsets) {
  if (offsets.empty()) return;
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  using Narrow = std::numeric_limits<std::int32_t>;
  const bool narrow = *least >= Narrow::min() && *most <= Narrow::max();
  Numbers head;
  head.width = narrow ? sizeof(std::int32_t) : sizeof(std::int64_t);
  head.size = std::ssize(offsets);
  void* const memory = ::operator new(head.bytes());
  Numbers* const made = new (memory) Numbers(head);
  const auto fill = [&]<class Number>(Number* to) {
    std::ranges::transform(offsets, to, [](std::int64_t offset) { return static_cast<Number>(offset); });
  };
  if (narrow)
    fill(reinterpret_cast<std::int32_t*>(made + 1));
  else
    fill(reinterpret_cast<std::int64_t*>(made + 1));
  numbers_ = detail::Held(memory);
}

std::int64_t OffsetList::size() const {
  return empty() ? 0 : numbers().size;
}

std::int64_t OffsetList::operator[](std::int64_t i) const {
  return numbers().narrow() ? numbers().numbers<std::int32_t>()[i] : numbers().numbers<std::int64_t>()[i];
}

std::int64_t OffsetList::least() const {
  return numbers().visit([](auto all) -> std::int64_t { return *std::ranges::min_element(all); });
}

std::int64_t OffsetList::most() const {
  return numbers().visit([](auto all) -> std::int64_t { return *std::ranges::max_element(all); });
}

const std::int32_t* OffsetList::narrow() const {
  return empty() || !numbers().narrow() ? nullptr : numbers().numbers<std::int32_t>();
}

const std::int64_t* OffsetList::wide() const {
  return empty() || numbers().narrow() ? nullptr : numbers().numbers<std::int64_t>();
}

OffsetList OffsetList::part(std::int64_t begin, std::int64_t end) const {
  if (empty() || (begin == 0 && end == size())) return *this;
  std::vector<std::int64_t> some;
  some.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) some.push_back((*this)[i]);
  return OffsetList(some);
}

std::int64_t OffsetList::bytes() const {
  return empty() ? 0 : static_cast<std::int64_t>(numbers().bytes());
}

bool OffsetList::equals(const OffsetList& other) const {
  const Numbers& a = numbers();
  const Numbers& b = other.numbers();
  return a.size == b.size && a.width == b.width && std::memcmp(&a + 1, &b + 1, a.bytes() - sizeof(Numbers)) == 0;
}

}  // namespace tasuki
