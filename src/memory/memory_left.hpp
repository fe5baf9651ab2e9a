// How much memory this process can still get. Tasuki asks before it allocates, because the kernel kills processes when
// memory runs out.
#pragma once

#include <cstdint>
#include <string>

namespace tasuki {

struct MemoryLeft {
  std::int64_t bytes = 0;
  std::string text;  ///< `20.1 GiB of memory are left on this host`
};
/// The smaller of the memory that the host has available and what is left of the limits of the process's control
/// groups.
MemoryLeft memory_left();
/// The same for who wants `bytes`. Looking takes a tenth of a millisecond, so where there was more than 64 times as
/// much not long ago (a tenth of a second), that is the answer.
MemoryLeft memory_left_for(std::int64_t bytes);

/// A number of bytes in words: `3.5 MiB`.
std::string describe_bytes(std::int64_t bytes);

}  // namespace tasuki
