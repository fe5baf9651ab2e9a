// Streams of other libraries: found in sys.modules, never imported, so that programs which do not use them do not pay.
#include "stream.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstdint>

#include "arguments.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

nb::handle loaded(const char* module) {
  return PyDict_GetItemString(PyImport_GetModuleDict(), module);
}

// PyTorch is also used without a GPU. Before it has started CUDA its current stream is the default one.
bool uses_gpu(nb::handle torch) {
  return torch.is_valid() && nb::hasattr(torch, "cuda") && nb::cast<bool>(torch.attr("cuda").attr("is_initialized")());
}

Stream as_stream(std::uintptr_t address) {
  return reinterpret_cast<Stream>(address);  // NOLINT(performance-no-int-to-ptr): that is how streams are passed
}

bool is_legacy(Stream stream) {
  return stream == nullptr || stream == as_stream(1);  // what CUDA calls cudaStreamLegacy
}

}  // namespace

Library library_of(nb::handle array) {
  const auto module = nb::cast<std::string>(nb::str(array.type().attr("__module__")));
  const auto root = module.substr(0, module.find('.'));
  if (root == "cupy") return Library::cupy;
  return root == "torch" ? Library::torch : Library::none;
}

Stream current_stream(Library library) {
  const nb::handle cupy = loaded("cupy");
  const nb::handle torch = loaded("torch");
  if (library == Library::none) {
    const bool by_torch = uses_gpu(torch);
    if (cupy.is_valid() == by_torch) return nullptr;  // both, or neither
    library = by_torch ? Library::torch : Library::cupy;
  }
  if (library == Library::torch) return stream_from(torch.attr("cuda").attr("current_stream")());
  return stream_from(cupy.attr("cuda").attr("get_current_stream")());
}

Stream stream_from(nb::handle value) {
  nb::object address = nb::borrow(value);
  try {
    if (nb::hasattr(value, "__cuda_stream__")) {
      nb::object pair = value.attr("__cuda_stream__");
      if (PyCallable_Check(pair.ptr()) != 0) pair = pair();  // a method; an attribute in its first draft
      if (!nb::cast<nb::object>(pair[0]).equal(nb::int_(0)))
        throw Error(fmt::format("argument 'stream' is {}, whose __cuda_stream__ has version {}; Tasuki knows version 0",
                                shown(value), shown(pair[0])));
      address = pair[1];
    } else if (nb::hasattr(value, "cuda_stream")) {
      address = value.attr("cuda_stream");
    } else if (nb::hasattr(value, "ptr")) {
      address = value.attr("ptr");
    }
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument 'stream' is {}, which does not tell its address: {}", shown(value),
                            nb::cast<std::string>(nb::str(error.value()))));
  }
  std::uintptr_t number = 0;
  if (!as_integer(address, number))
    throw Error(
        fmt::format("argument 'stream' is {}; it must be None, a stream of CuPy or PyTorch, an object with "
                    "__cuda_stream__, or a stream's address as an int",
                    shown(value)));
  return as_stream(number);
}

Stream stream_or_current(nb::handle value, Library library) {
  return value.is_none() ? current_stream(library) : stream_from(value);
}

void select_gpu(int ordinal) {
  if (current_gpu() != ordinal) tasuki::select_gpu(ordinal);
}

void order(Stream earlier, Stream later) {
  if (earlier == later || (is_legacy(earlier) && is_legacy(later))) return;
  static auto* fork = new Fork;  // never destroyed: CUDA may have ended before static destructors run
  fork->branch(earlier);
  fork->join(later);
}

}  // namespace tasuki::python
