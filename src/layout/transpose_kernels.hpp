// Copies that turn rows into columns: numbers that follow each other in the source along one dimension and in the
// destination along another.
#pragma once

#include <cstdint>
#include <optional>

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// The two dimensions of a copy that turns rows into columns: along `down` the source is dense, along `across` the
/// destination.
struct Turned {
  std::int32_t down, across;
};
/// Empty for a copy that does not, or of which both sides are small.
std::optional<Turned> turned(const StridedCopy& copy);

/// The function for a copy that transposes numbers of 4, 8 or 16 bytes, tile by tile; null for other copies.
CopyFunction select_transpose(const StridedCopy& copy);

}  // namespace tasuki
