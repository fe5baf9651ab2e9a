// Entries of exchanges as Python gives them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory.hpp"
#include "tasuki/cells.hpp"

namespace tasuki::python {

/// Numbers of cells: integers in one dimension, in anything that NumPy takes; None: there are none. Throws `Error`.
std::vector<std::int64_t> cells_from(nb::handle value, const std::string& what);
/// A list of (rank, send, receive). Layouts must lie inside the arrays, one a field. Throws `Error`.
std::vector<ExchangeEntry> entries_from(nb::handle entries, const std::vector<Array>& arrays);

}  // namespace tasuki::python
