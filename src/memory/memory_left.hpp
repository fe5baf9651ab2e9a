// How much memory this process can still get: asked before taking it, for the kernel ends processes when there is none.
#pragma once

#include <cstdint>
#include <string>

namespace tasuki {

struct MemoryLeft {
  std::int64_t bytes = 0;
  std::string text;  ///< `20.1 GiB of memory are left on this host`
};
/// What the host has available, or what the process's control groups leave of their limits if that is less.
MemoryLeft memory_left();

/// `3.5 MiB`.
std::string describe_bytes(std::int64_t bytes);

}  // namespace tasuki
