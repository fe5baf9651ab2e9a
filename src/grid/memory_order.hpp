// MemoryOrder: where the cells of a field lie in memory that is in no order of Tasuki's own.
#pragma once

#include <cstdint>

#include "tasuki/box.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// A rank's part of a field.
struct MemoryOrder {
  Index strides{};          ///< bytes from a local cell to the next one in each dimension, negative ones too
  std::int64_t origin = 0;  ///< bytes from the lowest cell's first byte to local cell (0, 0, ...)
};

/// `count` cells in each dimension, from local cell `at` on, relative to the lowest cell's first byte. In the order of
/// C, whatever their order in memory is.
inline Layout box_layout(const MemoryOrder& order, std::int64_t element_bytes, int ndims, const Index& at,
                         const Index& count) {
  Layout box = Layout::bytes(element_bytes);
  std::int64_t first = order.origin;
  for (int d = ndims - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    box = Layout::hvector(count[i], 1, order.strides[i], box);
    first += at[i] * order.strides[i];
  }
  const std::int64_t one = 1;
  return Layout::hindexed({&one, 1}, {&first, 1}, box);
}

}  // namespace tasuki
