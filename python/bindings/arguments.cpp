// Conversions of arguments.
#include "arguments.hpp"

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

[[noreturn]] void bad_width(nb::handle value, int ndims, const char* argument) {
  throw Error(
      fmt::format("argument '{}' is {}; it must be an int, or {} entries (one a dimension), each an int or a "
                  "pair (below, above)",
                  argument, shown(value), ndims));
}

bool as_integer(nb::handle value, std::int64_t& result) {
  return !nb::isinstance<nb::bool_>(value) && nb::try_cast(value, result, false);
}

}  // namespace

std::string shown(nb::handle value) {
  return nb::cast<std::string>(nb::repr(value));
}

Width width_from(nb::handle value, int ndims, const char* argument) {
  if (std::int64_t all = 0; as_integer(value, all)) return Width(all);
  std::vector<nb::object> entries;
  if (!nb::try_cast(value, entries) || entries.size() != static_cast<std::size_t>(ndims))
    bad_width(value, ndims, argument);
  Width width;
  for (std::size_t d = 0; d < entries.size(); ++d) {
    std::vector<nb::object> pair;
    std::int64_t both = 0;
    if (as_integer(entries[d], both)) {
      width.lo[d] = width.hi[d] = both;
    } else if (!nb::try_cast(entries[d], pair) || pair.size() != 2 || !as_integer(pair[0], width.lo[d]) ||
               !as_integer(pair[1], width.hi[d])) {
      bad_width(value, ndims, argument);
    }
  }
  for (std::size_t d = entries.size(); d < width.lo.size(); ++d) width.lo[d] = width.hi[d] = 0;
  return width;
}

nb::tuple slices(const Box& box) {
  nb::list result;
  for (int d = 0; d < box.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    result.append(nb::slice(nb::int_(box.lo[i]), nb::int_(box.hi[i]), nb::none()));
  }
  return nb::tuple(result);
}

}  // namespace tasuki::python
