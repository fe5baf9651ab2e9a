// What Python calls a Grid: shared by the fields made on it.
#pragma once

#include <memory>
#include <string>

#include "owner.hpp"
#include "tasuki/grid.hpp"

namespace tasuki::python {

struct GridHandle {
  std::shared_ptr<Held<Grid>> held;
  std::string text;  ///< of its `repr`
  const Grid& grid() const { return held->core(); }
};

}  // namespace tasuki::python
