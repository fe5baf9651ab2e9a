// Calls whose arguments fit no form of a function: a sentence about the argument in place of nanobind's signatures.
//
// Every function of the module is called through the slot that PEP 590 gives it. The slot is replaced by a call that
// passes on to the one before, and looks at the error only where that fails.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.hpp"
#include "module.hpp"

namespace tasuki::python {
namespace {

using Call = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

/// nanobind has a few ways to dispatch a call, and chooses one for each function.
constexpr std::size_t kWays = 16;
std::array<Call, kWays> ways{};

/// The number of positional arguments; nanobind keeps marks of its own in the upper bits beside Python's.
std::size_t positional(std::size_t nargsf) {
  return nargsf & 0xffffffffU;
}

/// With an error set that says that nothing fits, sets one that says why.
void put_into_words(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) noexcept {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return;
  nb::python_error error;
  try {
    const std::string_view what = error.what();
    if (what.find("(): incompatible function arguments.") != std::string_view::npos) {
      nb::list given;
      for (std::size_t i = 0; i < count; ++i) given.append(nb::borrow(arguments[i]));
      nb::dict named;
      std::size_t at = count;
      if (names != nullptr)
        for (const nb::handle name : nb::borrow<nb::tuple>(names)) named[name] = nb::borrow(arguments[at++]);
      const nb::object sentence =
          nb::module_::import_("tasuki.arguments")
              .attr("sentence")(nb::borrow(function), given, named,
                                nb::cpp_function([](nb::handle value) { return shown(value); }));
      if (!sentence.is_none()) {
        const nb::object own = nb::module_::import_("tasuki._core").attr("Error");
        const nb::object text = sentence[0];
        PyErr_SetObject(nb::cast<bool>(sentence[1]) ? own.ptr() : PyExc_TypeError, text.ptr());
        return;
      }
    }
  } catch (const std::exception&) {  // what nanobind says is better than nothing
    PyErr_Clear();
  }
  error.restore();
}

template <std::size_t Way>
PyObject* call(PyObject* function, PyObject* const* arguments, std::size_t nargsf, PyObject* names) noexcept {
  PyObject* result = ways[Way](function, arguments, nargsf, names);
  if (result == nullptr) [[unlikely]]
    put_into_words(function, arguments, positional(nargsf), names);
  return result;
}

template <std::size_t... Way>
constexpr std::array<Call, kWays> calls_of(std::index_sequence<Way...>) {
  return {call<Way>...};
}
constexpr std::array<Call, kWays> calls = calls_of(std::make_index_sequence<kWays>());

/// Replaces the slot of a function of nanobind's; leaves everything else alone.
void replace_slot(nb::handle function) {
  const Py_ssize_t offset = Py_TYPE(function.ptr())->tp_vectorcall_offset;
  if (offset <= 0 || !nb::hasattr(function, "__nb_signature__")) return;
  char* slot = reinterpret_cast<char*>(function.ptr()) + offset;
  Call now = nullptr;
  std::memcpy(&now, slot, sizeof now);
  for (const Call ours : calls)
    if (now == ours) return;
  for (std::size_t way = 0; way < kWays; ++way) {
    if (ways[way] == nullptr) ways[way] = now;
    if (ways[way] != now) continue;
    std::memcpy(slot, &calls[way], sizeof now);
    return;
  }
}

}  // namespace

void complain_in_words(nb::module_& m) {
  for (const auto& [name, thing] : nb::borrow<nb::dict>(m.attr("__dict__"))) {
    replace_slot(thing);
    if (!nb::isinstance<nb::type_object>(thing)) continue;
    // The entries of a class's own dict are functions as they were defined, not bound to the class.
    const nb::object entries = nb::module_::import_("builtins").attr("dict")(thing.attr("__dict__"));
    for (const auto& [key, entry] : nb::borrow<nb::dict>(entries)) {
      replace_slot(entry);
      for (const char* held : {"__func__", "fget", "fset"})  // of static methods and properties
        if (nb::hasattr(entry, held)) replace_slot(entry.attr(held));
    }
  }
}

}  // namespace tasuki::python
