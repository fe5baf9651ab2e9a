// Layouts as Python gives them.
#pragma once

#include "memory.hpp"
#include "tasuki/layout.hpp"

namespace tasuki::python {

/// `value` as a Layout, which must lie inside the memory that `array` spans. Throws `Error`.
Layout layout_inside(nb::handle value, const Array& array, const std::string& argument);

}  // namespace tasuki::python
