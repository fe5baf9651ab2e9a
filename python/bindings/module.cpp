// The extension module: exceptions, waits, the end of the program, and what the other files bind.
#include "module.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "owner.hpp"
#include "tasuki/error.hpp"
#include "tasuki/version.h"

namespace nb = nanobind;
using namespace tasuki::python;

namespace {

// Where the MPI library was loaded from: its launcher is the one to use.
std::string mpi_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MPI_Init), &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

/// Subclasses of tasuki.Error, one a kind, in the order of `tasuki::ErrorKind`.
std::array<nb::handle, 6> exceptions_of_kinds(nb::module_& m, nb::handle error) {
  constexpr std::array<std::pair<const char*, const char*>, 6> named = {{
      {"ArgumentError", "An argument, a setting or the state of an object does not allow the call."},
      {"DisagreementError", "The ranks pass different arguments, or make different objects."},
      {"NotPossibleError", "It cannot be done on this machine or by this build, such as a path between these ranks."},
      {"RankDiedError", "A rank that this one depends on has died or given up. The context has failed."},
      {"DeadlineError", "A wait has lasted longer than the context's deadline. The context has failed."},
      {"SystemFailure", "MPI, CUDA, NCCL or the operating system reported a failure."},
  }};
  std::array<nb::handle, 6> all;
  for (std::size_t kind = 0; kind < named.size(); ++kind) {
    const auto& [name, doc] = named[kind];
    const std::string full = std::string("tasuki.") + name;
    const nb::object made = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, error.ptr(), nullptr));
    if (!made.is_valid()) nb::raise_python_error();
    m.attr(name) = made;  // and keeps it
    all[kind] = made;
  }
  return all;
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // objects of a program that just ends are no leak
  nb::exception<tasuki::Error> error(m, "Error", PyExc_RuntimeError);
  error.attr("__module__") = "tasuki";
  error.doc() = "Every failure that Tasuki can describe; the text names rank, operation, argument and what to do.";
  static std::array<nb::handle, 6> kinds = exceptions_of_kinds(m, error);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const tasuki::Error& failure) {
      // nanobind takes texts for UTF-8, but one that quotes what was given may have cut it anywhere.
      const auto bytes = static_cast<Py_ssize_t>(std::strlen(failure.what()));
      const nb::object text = nb::steal(PyUnicode_DecodeUTF8(failure.what(), bytes, "backslashreplace"));
      if (text.is_valid()) PyErr_SetObject(kinds[static_cast<std::size_t>(failure.kind())].ptr(), text.ptr());
    } catch (const tasuki::Interruption& interruption) {
      // Python's own exception was set when the signal was seen.
      if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_KeyboardInterrupt, interruption.what());
    }
  });
  install_wait_hooks();
  bind_context_and_grid(m);
  bind_memory(m);
  bind_device(m);
  bind_field(m);
  bind_plan(m);
  bind_layout(m);
  bind_operations(m);
  bind_operators(m);
  bind_collectives(m);
  bind_made(m);
  bind_exchange(m);
  bind_redistribute(m);
  bind_offline(m);
  bind_predict(m);
  bind_tune(m);
  bind_graph(m);
  bind_kernel(m);
  m.attr("__version__") = TASUKI_VERSION_TEXT;
  m.def("mpi_library", mpi_library, "The file that MPI was loaded from; empty if that cannot be told.");
  m.def("_close_all", [] { Owner::close_all(); });
  m.def("_any_with_others", [] { return Owner::any_with_others(); });
  m.def("_fail_all", [](const std::string& why) {
    Owner::fail_all(why);
    end_without_mpi();
  });
  complain_in_words(m);
}
