// Memory that the ranks of one host share, for buffers that are not fields.
#pragma once

#include <cstdint>
#include <memory>

#include "tasuki/context.hpp"

namespace tasuki {

/// Allocates `bytes` zero-filled bytes (may be 0) that the ranks of the same host can map: transfers from and to them
/// need no staging. They are aligned to 64 bytes, from 64 KiB on to a page. Local: one rank may call it alone.
///
/// The pointer keeps the memory and its context alive. When the last owner is gone the memory is freed; it is allocated
/// again only when no other rank has it mapped. It has no name in any file system, is obtained now and not by the first
/// store, and ends with the process. Throws `Error`, on this rank only, if `bytes` is negative or if there is not
/// enough memory; the text says what was asked for and what is left.
std::shared_ptr<std::byte> shared_alloc(const Context& context, std::int64_t bytes);

}  // namespace tasuki
