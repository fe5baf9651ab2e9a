// Conversions of arguments.
#include "arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "field.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

[[noreturn]] void bad_width(nb::handle value, int ndims, const char* argument) {
  throw Error(
      fmt::format("argument '{}' is {}; it must be an int, or {} entries (one a dimension), each an int or a "
                  "pair (below, above)",
                  argument, shown(value), ndims));
}

constexpr Py_ssize_t kLongText = 200;  // characters
constexpr std::size_t kLongList = 8;
constexpr int kDeep = 3;

// Whoever made the text may have put anything into it.
std::string cut(nb::handle text) {
  const bool longer = PyUnicode_GetLength(text.ptr()) > kLongText;
  const nb::object some = nb::steal(PyUnicode_Substring(text.ptr(), 0, kLongText));
  if (!some.is_valid()) nb::raise_python_error();
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(some.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) nb::raise_python_error();
  return std::string(PyBytes_AsString(bytes.ptr())) + (longer ? "..." : "");
}

// Of any library. A field has a short text of its own, and a type only has the attributes of its instances.
bool is_array(nb::handle value) {
  if (nb::isinstance<PyField>(value) || PyType_Check(value.ptr()) != 0) return false;
  return nb::hasattr(value, "dtype") && nb::hasattr(value, "shape") && nb::len(nb::object(value.attr("shape"))) > 0;
}

std::string shown_at(nb::handle value, int depth);

std::string shown_list(nb::handle list, int depth) {
  std::vector<std::string> texts;
  const std::size_t count = nb::len(list);
  for (std::size_t i = 0; i < std::min(count, kLongList); ++i) texts.push_back(shown_at(list[i], depth + 1));
  if (count > kLongList) texts.emplace_back("...");
  const std::string inner = fmt::format("{}", fmt::join(texts, ", "));
  if (nb::isinstance<nb::list>(list)) return fmt::format("[{}]", inner);
  return fmt::format("({}{})", inner, count == 1 ? "," : "");
}

std::string shown_at(nb::handle value, int depth) {
  try {
    if (is_array(value)) {
      const nb::object dtype = value.attr("dtype");
      const nb::object shape = value.attr("shape");
      return fmt::format("a {} of {} with shape {}", kind_of(value), cut(nb::str(dtype)),
                         cut(nb::str(nb::tuple(shape))));
    }
    if ((PyTuple_CheckExact(value.ptr()) || PyList_CheckExact(value.ptr())) && depth < kDeep)
      return shown_list(value, depth);
    return cut(nb::repr(value));
  } catch (const std::exception&) {  // a message must not fail for what it is about
    return fmt::format("a {} without a text", kind_of(value));
  }
}

}  // namespace

std::string in_python(std::string_view text, Names names) {
  const auto known = [&](std::string_view name) {
    const auto* const found =
        std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.first == name; });
    return found == names.end() ? std::string_view() : found->second;
  };
  // What users have named stands in quotes as well: `there is no path 'in'`.
  const auto is_argument = [&](std::size_t quote) {
    constexpr std::string_view leads[] = {"argument ", "arguments ", "and ", "but ", "of ", "whose ", ": ", ", "};
    const std::string_view before = text.substr(0, quote);
    return before.empty() || std::any_of(std::begin(leads), std::end(leads),
                                         [&](std::string_view lead) { return before.ends_with(lead); });
  };
  std::string result;
  std::size_t at = 0;
  for (std::size_t quote = text.find('\''); quote != std::string_view::npos; quote = text.find('\'', at)) {
    const std::size_t end = text.find('\'', quote + 1);
    if (end == std::string_view::npos) break;
    const std::string_view quoted = text.substr(quote + 1, end - quote - 1);
    const std::size_t part = std::min(quoted.find_first_of(".["), quoted.size());  // `from.base`, `in_layouts[2]`
    std::string_view name = known(quoted);
    std::string_view rest;
    if (name.empty()) {
      name = known(quoted.substr(0, part));
      rest = quoted.substr(part);
    }
    if (name.empty() || !is_argument(quote)) {
      result += text.substr(at, quote + 1 - at);
      at = quote + 1;
      continue;
    }
    result += text.substr(at, quote + 1 - at);
    result += name;
    result += rest;
    at = end;
  }
  return result + std::string(text.substr(at));
}

std::string kind_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value.type().attr("__name__")));
}

std::string shown(nb::handle value) {
  return shown_at(value, 0);
}

bool as_truth(nb::handle value, Truth& result) noexcept {
  const std::string_view type = Py_TYPE(value.ptr())->tp_name;
  if (!nb::isinstance<nb::bool_>(value) && type != "numpy.bool" && type != "numpy.bool_") return false;
  result.value = PyObject_IsTrue(value.ptr()) == 1;
  return true;
}

void check_made(nb::handle object) {
  if (nb::inst_ready(object)) return;
  throw nb::type_error(
      fmt::format("a {} without content was given; where a class of yours derives from one of Tasuki's, its __init__ "
                  "must call super().__init__(...)",
                  kind_of(object))
          .c_str());
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

bool box_from(nb::handle value, Box& box) {
  std::vector<nb::object> entries;
  if (PySlice_Check(value.ptr())) {
    entries = {nb::borrow(value)};
  } else if (!nb::isinstance<nb::tuple>(value) || !nb::try_cast(value, entries)) {
    return false;
  }
  if (entries.empty() || entries.size() > kMaxDims) return false;
  box = Box();
  box.ndims = static_cast<int>(entries.size());
  for (std::size_t d = 0; d < entries.size(); ++d) {
    if (!PySlice_Check(entries[d].ptr())) return false;
    std::int64_t step = 1;
    const nb::object given = entries[d].attr("step");
    if (!given.is_none() && !as_integer(given, step)) return false;
    if (step != 1 || !as_integer(entries[d].attr("start"), box.lo[d]) ||
        !as_integer(entries[d].attr("stop"), box.hi[d]))
      return false;
  }
  return true;
}

}  // namespace tasuki::python
