// Handles of operations for kernels, as methods of operations make them.
#pragma once

#include "operation.hpp"

namespace tasuki::python {

/// The KernelArgument of `operation`, a Python Operation, for a group of so many blocks of so many threads. `cells`:
/// for each block boxes, or None.
nb::object handle_of(nb::handle operation, bool reduces, int blocks, int threads, int cpu_threads, nb::handle cells);

}  // namespace tasuki::python
