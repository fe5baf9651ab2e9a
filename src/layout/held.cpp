// Memory that copies share, and texts in it.
#include "tasuki/held.hpp"

#include <cstring>
#include <new>

namespace tasuki {

namespace detail {

// Counted atomically: a plan may be copied and dropped wherever its ranks run.
void Held::hold() const noexcept {
  __atomic_fetch_add(holders_, 1, __ATOMIC_RELAXED);
}

void Held::drop() noexcept {
  if (__atomic_sub_fetch(holders_, 1, __ATOMIC_ACQ_REL) == 0) ::operator delete(holders_);
}

bool Held::alone() const noexcept {
  return __atomic_load_n(holders_, __ATOMIC_ACQUIRE) == 1;
}

}  // namespace detail

Name::Name(std::string_view text) {
  if (text.empty()) return;
  void* const memory = ::operator new(sizeof(Head) + text.size());
  Head* const head = new (memory) Head{1, static_cast<std::uint32_t>(text.size())};
  std::memcpy(head + 1, text.data(), text.size());
  text_ = detail::Held(memory);
}

std::string_view Name::view() const {
  if (empty()) return {};
  const auto* const head = static_cast<const Head*>(text_.get());
  return {reinterpret_cast<const char*>(head + 1), head->size};
}

std::int64_t Name::bytes() const {
  return empty() ? 0 : static_cast<std::int64_t>(sizeof(Head) + view().size());
}

}  // namespace tasuki
