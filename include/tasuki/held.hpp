// Held: what copies of a value share in memory, and texts that do.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tasuki {

namespace detail {

/// Memory that its copies share. It begins with the number of those who hold it (32 bits), and ends with the last.
class Held {
 public:
  Held() = default;                                                                              ///< None.
  explicit Held(void* memory) : holders_(static_cast<std::int32_t*>(memory)) { *holders_ = 1; }  ///< From operator new.
  Held(const Held& other) noexcept : holders_(other.holders_) {
    if (holders_ != nullptr) hold();
  }
  Held(Held&& other) noexcept : holders_(std::exchange(other.holders_, nullptr)) {}
  Held& operator=(const Held& other) noexcept {
    Held copy(other);
    std::swap(holders_, copy.holders_);
    return *this;
  }
  Held& operator=(Held&& other) noexcept {
    std::swap(holders_, other.holders_);
    return *this;
  }
  ~Held() {
    if (holders_ != nullptr) drop();
  }

  void* get() const { return holders_; }
  bool alone() const noexcept;  ///< Of memory: nobody else holds it.

 private:
  void hold() const noexcept;
  void drop() noexcept;
  std::int32_t* holders_ = nullptr;
};

}  // namespace detail

/// A text of which copies share the bytes: plans have many buffers of few names.
class Name {
 public:
  Name() = default;             ///< Empty.
  Name(std::string_view text);  // NOLINT(google-explicit-constructor): as a string is made of one
  Name(const std::string& text) : Name(std::string_view(text)) {}  // NOLINT(google-explicit-constructor): likewise
  Name(const char* text) : Name(std::string_view(text)) {}         // NOLINT(google-explicit-constructor): likewise

  std::string_view view() const;
  operator std::string() const { return std::string(view()); }  // NOLINT(google-explicit-constructor): likewise
  bool empty() const { return text_.get() == nullptr; }
  std::int64_t bytes() const;  ///< That it occupies.
  /// Which bytes it shares with its copies; null if it is empty.
  const void* identity() const { return text_.get(); }
  friend bool operator==(const Name& a, const Name& b) { return a.identity() == b.identity() || a.view() == b.view(); }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const Name& a, const Text& b) {
    return a.view() == std::string_view(b);
  }

 private:
  struct Head {  // the bytes follow it
    std::int32_t holders;
    std::uint32_t size;
  };
  detail::Held text_;
};

}  // namespace tasuki
