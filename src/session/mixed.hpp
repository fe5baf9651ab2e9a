// Mixed: numbers from several, for operations that have no other name.
#pragma once

#include <cstdint>

namespace tasuki {

/// A number from two, so that equal ones come from equal ones for all that a test can see.
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e37'79b9'7f4a'7c15 + b;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

}  // namespace tasuki
