// What Python calls a Grid: shared by the fields made on it.
#pragma once

#include <memory>

#include "owner.hpp"
#include "tasuki/grid.hpp"

namespace tasuki::python {

struct GridHandle {
  std::shared_ptr<Held<Grid>> held;
  const Grid& grid() const { return held->core(); }
};

}  // namespace tasuki::python
