// Memory that the ranks of one host share, for buffers that are not fields.
#pragma once

#include <cstdint>
#include <memory>

#include "tasuki/context.hpp"

namespace tasuki {

/// `bytes` zero-filled bytes (may be 0), aligned to 64 (from 64 KiB on to the page), that the ranks of the same host
/// can reach: transfers from and to it need no staging. Local: one rank may call it alone. The pointer keeps the
/// memory, and its context; the last copy gives it back, and it is used again when no other rank has it mapped any
/// more. Throws `Error`, on this rank only, if `bytes` is negative, or cannot be had: then with what was asked for and
/// what is left. The memory has no name in any file system, is obtained now and not by the first store, and goes with
/// the process.
std::shared_ptr<std::byte> shared_alloc(const Context& context, std::int64_t bytes);

}  // namespace tasuki
