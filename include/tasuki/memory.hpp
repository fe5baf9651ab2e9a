// Memory that the ranks of one host share, for buffers that are not fields.
#pragma once

#include <cstdint>
#include <memory>

#include "tasuki/context.hpp"

namespace tasuki {

/// `bytes` zero-filled bytes (may differ between ranks, may be 0), aligned to 64, that the ranks of the same host can
/// reach: transfers from and to it need no staging. Collective. The pointer keeps the memory; the last copy gives it
/// back, locally.
std::shared_ptr<std::byte> shared_alloc(const Context& context, std::int64_t bytes);

}  // namespace tasuki
