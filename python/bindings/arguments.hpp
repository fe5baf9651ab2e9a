// Turns Python arguments into the core's types and back: widths, shapes, boxes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "tasuki/field.hpp"

namespace tasuki::python {

namespace nb = nanobind;

/// An int for all sides, or one entry a dimension, each an int or a pair (below, above). Throws `Error`.
Width width_from(nb::handle value, int ndims, const char* argument);

/// A tuple of slices, one a dimension: indexes any array.
nb::tuple slices(const Box& box);

/// `shown(value)`, for error messages.
std::string shown(nb::handle value);

/// The first `count` entries as a tuple of ints.
template <class List>
nb::tuple tuple_of(const List& list, int count) {
  nb::list result;
  for (int i = 0; i < count; ++i) result.append(list[static_cast<std::size_t>(i)]);
  return nb::tuple(result);
}

}  // namespace tasuki::python
