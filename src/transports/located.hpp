// Located: where a plan's buffer is in this process.
#pragma once

#include <cstddef>

namespace tasuki {

/// Copy i of the buffer at base + i * stride. Buffers that cannot be reached from here have no base (channels carry
/// what concerns them).
struct Located {
  std::byte* base = nullptr;
  std::ptrdiff_t stride = 0;
  int copies = 1;
  bool takes_turns = false;      ///< epoch e uses copy (first + e - 1) % copies
  bool stamped = false;          ///< what Home::stamped says: of the plan's bytes a line holds kStampedData
  const int* current = nullptr;  ///< the copy the user shows: with turns read at the first start, else at every start
  std::byte* copy(int i) const { return base + i * stride; }
};

}  // namespace tasuki
