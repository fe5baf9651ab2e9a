// Cutting text without cutting a character in two: languages refuse text with half of one.
#pragma once

#include <cstddef>
#include <string_view>

namespace tasuki {

/// At most `most` bytes from the front of `text`, which may be UTF-8, up to the end of a character.
inline std::string_view whole_characters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  constexpr unsigned kMask = 0xc0;
  constexpr unsigned kContinues = 0x80;
  constexpr std::size_t kLongest = 4;
  std::size_t end = most;
  while (end > 0 && most - end < kLongest && (static_cast<unsigned char>(text[end]) & kMask) == kContinues) --end;
  // Bytes that are no UTF-8 are cut where they are.
  const bool whole = (static_cast<unsigned char>(text[end]) & kMask) != kContinues;
  return text.substr(0, whole ? end : most);
}

}  // namespace tasuki
