// Operators of reductions that are Python functions: checked when they are made, called by whichever thread combines.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tasuki/collectives.hpp"
#include "tasuki/context.hpp"

namespace tasuki::python {

namespace nb = nanobind;

/// `tasuki.Operator`.
struct PyOperator {
  nb::object function;
  std::string name;  ///< for plans and errors
  bool commutes = true;
  bool ufunc = false;  ///< of NumPy: called with `out`
};

/// Argument `op` of a reduction: the name of an operator, an `Operator`, or a function that becomes one. `dtype`: of
/// the elements; None if there are none. `operation`: for errors. Throws `Error` or TypeError for what is no operator,
/// and for a ufunc that does not give elements of the type.
Operator operator_from(nb::handle op, nb::handle dtype, const Context& context, const std::string& operation);

}  // namespace tasuki::python
