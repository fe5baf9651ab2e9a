// Turns Python arguments into the core's types and back: widths, shapes, boxes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/field.hpp"

namespace tasuki::python {

namespace nb = nanobind;

/// Names of arguments in the core's errors, and what Python calls these.
using Names = std::initializer_list<std::pair<std::string_view, std::string_view>>;
/// A text of the core's with Python's names: `'in'` becomes `'source'`, `'from.base'` becomes `'source.base'`.
std::string in_python(std::string_view text, Names names);

/// Runs `make`. What the core throws names the arguments as Python does.
template <class Make>
auto with_names(Names names, Make&& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.kind(), in_python(error.what(), names));
  }
}

/// An int for all sides, or one entry a dimension, each an int or a pair (below, above). Throws `Error`.
Width width_from(nb::handle value, int ndims, const char* argument);

/// A tuple of slices, one a dimension: indexes any array.
nb::tuple slices(const Box& box);
/// The other way: a tuple of slices with a beginning and an end, or one slice. False if it is none.
bool box_from(nb::handle value, Box& box);

/// Where something is cut, by dimension; None: nowhere.
using Cuts = std::optional<std::vector<std::optional<std::vector<std::int64_t>>>>;
inline std::vector<std::vector<std::int64_t>> lists_of(const Cuts& cuts) {
  std::vector<std::vector<std::int64_t>> lists;
  if (cuts)
    for (const auto& list : *cuts) lists.push_back(list.value_or(std::vector<std::int64_t>{}));
  return lists;
}

/// Which rank has which box: a mapping's name, or the rank of each box; None: as without it.
using Mapping = std::optional<std::variant<std::string, std::vector<int>>>;
inline void map_boxes(GridOptions& options, const Mapping& mapping) {
  if (!mapping) return;
  const auto* const given = std::get_if<1>(&*mapping);
  options.mapping = given != nullptr ? "given" : std::get<0>(*mapping);
  if (given != nullptr) options.given = *given;
}

/// `repr(value)` for error messages: cut where it is long, with type and shape instead of what an array holds.
std::string shown(nb::handle value);

/// The name of its type, for error messages.
std::string kind_of(nb::handle value);

/// Anything with `__index__` that fits `T`, so NumPy's integers too, but no bool: that would be a slip.
template <class T>
bool as_integer(nb::handle value, T& result) {
  return !nb::isinstance<nb::bool_>(value) && nb::try_cast(value, result);
}

/// A bool, Python's or NumPy's.
struct Truth {
  bool value = false;
  operator bool() const { return value; }  // NOLINT(google-explicit-constructor)
};
bool as_truth(nb::handle value, Truth& result) noexcept;

/// Throws TypeError for an object without content: made by `__new__`, or of a class that forgets `super().__init__`.
void check_made(nb::handle object);

/// The `T` in an object that is known to be one. Throws TypeError like `check_made`.
template <class T>
T& inside(nb::handle object) {
  check_made(object);
  return *nb::inst_ptr<T>(object);
}

/// The first `count` entries as a tuple of ints.
template <class List>
nb::tuple tuple_of(const List& list, int count) {
  nb::list result;
  for (int i = 0; i < count; ++i) result.append(list[static_cast<std::size_t>(i)]);
  return nb::tuple(result);
}

}  // namespace tasuki::python

template <>
struct nanobind::detail::type_caster<tasuki::python::Truth> {
  NB_TYPE_CASTER(tasuki::python::Truth, const_name("bool"))
  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    return tasuki::python::as_truth(source, value);
  }
};
