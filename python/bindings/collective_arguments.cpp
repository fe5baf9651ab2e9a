// What collectives can combine of NumPy's types.
#include "collective_arguments.hpp"

#include <nanobind/stl/string.h>

namespace tasuki::python {
namespace {

/// A pair of a value and an index, laid out as the core lays it out; `none` for all else.
DType pair_type(nb::handle dtype) {
  const nb::object names = dtype.attr("names");
  if (names.is_none() || nb::len(names) != 2) return DType::none;
  const nb::object value = dtype.attr("fields")[names[0]];
  const nb::object index = dtype.attr("fields")[names[1]];
  const DType first = number_type(value[0]);
  const DType second = number_type(index[0]);
  for (const DType pair :
       {DType::f32_i32, DType::f64_i32, DType::i32_i32, DType::i64_i32, DType::f64_i64, DType::i64_i64}) {
    if (to_string(pair) != fmt::format("{}_{}", to_string(first), to_string(second))) continue;
    if (element_bytes(dtype) == size_of(pair) && nb::cast<std::int64_t>(value[1]) == 0 &&
        nb::cast<std::int64_t>(index[1]) == size_of(first))
      return pair;
    throw Error(
        fmt::format("elements of type {} are pairs with other gaps than C's; make the type with numpy.dtype(..., "
                    "align=True)",
                    name_of(dtype)));
  }
  return DType::none;
}

}  // namespace

DType combined_type(nb::handle dtype, ReduceOp op) {
  if (const DType number = number_type(dtype); number != DType::none) return number;
  if (const DType pair = pair_type(dtype); pair != DType::none) return pair;
  if (nb::cast<std::string>(dtype.attr("kind")) == "b") {
    if (op == ReduceOp::sum)
      throw Error("argument 'op' is 'sum', which has no meaning for bool; give 'lor', or an array of integers");
    return DType::u8;
  }
  throw Error(
      fmt::format("elements of type {} cannot be combined; give integers, floats, complex numbers or bools of this "
                  "processor's byte order, or pairs of a value and an index",
                  name_of(dtype)));
}

}  // namespace tasuki::python
