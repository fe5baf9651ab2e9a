// The version of what the library hands to kernels: of all structures that a Handle, a Team, Messages, a Shape or
// Neighbours are or point to. A user's kernel is compiled against these headers, the library at another time, and
// neither would notice a member that has moved. Part of tasuki/kernel.cuh.
//
// A program passes its number to the library where it asks for one of them (`device()`), and a kernel compares its own
// with that of whoever made what it was given, at the begin of a call. tests/kernel/version.py notices a structure that
// changes while the number does not.
#pragma once

#include "tasuki/kernel/impl/standard.hpp"

namespace tasuki::device {

/// Raise it with each change of such a structure, or of what its values mean.
inline constexpr std::uint32_t kKernelVersion = 12;

/// What a Handle and a Team begin with, in all versions: so a kernel of another version finds it.
struct Heading {
  std::uint32_t version;   // of the library
  std::uint32_t number;    // by which a launch knows what it belongs to
  std::uint32_t* failure;  // the first word of the first failure, in host memory
};

/// That first word, where a kernel has found another version than its own: this bit and its own number.
inline constexpr std::uint32_t kOtherVersion = 1u << 31;

}  // namespace tasuki::device
