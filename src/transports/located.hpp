// Located: the address of a plan's buffer in this process.
#pragma once

#include <cstddef>

namespace tasuki {

/// Copy i of the buffer is at base + i * stride. A buffer that this process cannot address has a null base; channels
/// carry the commands that use it.
struct Located {
  std::byte* base = nullptr;
  std::ptrdiff_t stride = 0;
  int copies = 1;
  bool takes_turns = false;      ///< epoch e uses copy (first + e - 1) % copies
  bool ll = false;               ///< the buffer has LL lines (Home::ll), each with kLLLineData bytes of the plan
  const int* current = nullptr;  ///< the copy that `data()` shows: with turns read at first start, else at every start
  std::byte* copy(int i) const { return base + i * stride; }
};

}  // namespace tasuki
