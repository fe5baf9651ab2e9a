// Exact 64-bit arithmetic for offsets and sizes: computes in 128 bits, then narrows with an error that names the
// argument.
#pragma once

#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {

__extension__ typedef __int128 Wide;  // holds the product of any two 64-bit numbers

/// `value` as 64 bits, or an Error that says which argument of which operation made it too large.
inline std::int64_t narrow(Wide value, const char* operation, const char* argument, std::int64_t given) {
  if (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max())
    throw Error(fmt::format("{}: {} is {}, which takes a size or byte offset out of 64 bits; make it smaller",
                            operation, argument, given));
  return static_cast<std::int64_t>(value);
}

/// Throws an Error unless `value` is a count: 0 or more.
inline void check_count(std::int64_t value, const char* operation, const char* argument) {
  if (value < 0) throw Error(fmt::format("{}: {} is {}; it must be 0 or more", operation, argument, value));
}

}  // namespace tasuki
