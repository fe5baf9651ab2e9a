// Cells: the two usual ways in which a field of cells with several numbers lies in memory.
#include "tasuki/cells.hpp"

#include <utility>

namespace tasuki {

Cells Cells::of(DType dtype, std::int64_t count, std::int64_t numbers, std::string name) {
  return {std::move(name), Layout::bytes(numbers * size_of(dtype)), dtype, count};
}

Cells Cells::levels_first(DType dtype, std::int64_t count, std::int64_t numbers, std::string name) {
  const Layout number = Layout::bytes(size_of(dtype));
  return {std::move(name), Layout::resized(Layout::vector(numbers, 1, count, number), 0, size_of(dtype)), dtype, count};
}

}  // namespace tasuki
