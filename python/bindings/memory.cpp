// Arrays in and out.
#include "memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <typeinfo>
#include <utility>

#include "arguments.hpp"
#include "field.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki::python {
namespace {

nb::object numpy(const char* name) {
  return nb::module_::import_("numpy").attr(name);
}

/// Calls `f`; what Python raises there becomes an `Error` about the argument.
template <class F>
auto or_complain(const std::string& argument, nb::handle object, F&& f) {
  try {
    return f();
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument '{}' is a {} whose memory cannot be shared: {}", argument, kind_of(object),
                            nb::cast<std::string>(nb::str(error.value()))));
  }
}

struct Place {
  Memory where = Memory::host;
  int gpu = -1;
};

Place place_of(nb::handle object, const std::string& argument) {
  if (nb::hasattr(object, "__dlpack_device__")) {
    const auto place = or_complain(argument, object, [&] { return object.attr("__dlpack_device__")(); });
    const int kind = nb::cast<int>(place[0]);
    if (kind == nb::device::cpu::value || kind == nb::device::cuda_host::value) return {};
    const int number = nb::cast<int>(place[1]);
    if (kind == nb::device::cuda::value || kind == nb::device::cuda_managed::value) return {Memory::device, number};
    throw Error(
        fmt::format("argument '{}' is a {} on DLPack device {}:{}; Tasuki takes memory of the CPU and of CUDA GPUs: "
                    "copy it there first",
                    argument, kind_of(object), kind, number));
  }
  return {nb::hasattr(object, "__cuda_array_interface__") ? Memory::device : Memory::host, -1};
}

// What the driver says, if the process uses one: not every protocol names the GPU.
int gpu_of(const void* p, int otherwise) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return otherwise;
  using Ask = int (*)(void*, int, std::uintptr_t);
  const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuPointerGetAttribute"));
  constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  int ordinal = otherwise;
  if (ask == nullptr || ask(&ordinal, kDeviceOrdinal, reinterpret_cast<std::uintptr_t>(p)) != 0) ordinal = otherwise;
  dlclose(driver);
  return ordinal;
}

nb::object numpy_view(nb::handle object, const std::string& argument) {
  return or_complain(argument, object, [&] {
    if (nb::hasattr(object, "__array_interface__")) return nb::object(numpy("asarray")(object));
    nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
    if (!view.is_valid()) nb::raise_python_error();
    return nb::object(numpy("asarray")(view));  // `bytes` are no string here
  });
}

// What shows a new copy of its values at every look has no memory to work in.
void check_in_place(nb::handle object, nb::handle seen, const std::string& argument) {
  if (nb::isinstance(object, numpy("generic")))
    throw Error(
        fmt::format("argument '{}' is {}, a number of NumPy, which makes a copy of itself; give an array: "
                    "numpy.array(value)",
                    argument, shown(object)));
  if (PyObject_CheckBuffer(object.ptr()) != 0 || nb::cast<std::int64_t>(seen.attr("nbytes")) == 0) return;
  const auto place = [](nb::handle array) { return nb::object(array.attr("__array_interface__")["data"][0]); };
  const nb::object again = numpy_view(object, argument);
  if (!place(again).equal(place(seen)))
    throw Error(
        fmt::format("argument '{}' is a {}, which makes a copy of itself; give numpy.asarray(...) of it, or an array "
                    "of your own where Tasuki writes",
                    argument, kind_of(object)));
}

[[noreturn]] void complain_of_read_only(const std::string& argument) {
  throw Error(fmt::format("argument '{}' is read-only, but Tasuki writes into it; give a writable array", argument));
}

// Arrays of NumPy, and everything that NumPy can look at without a copy.
Array from_numpy(nb::handle object, const std::string& argument, bool writable) {
  Array array;
  const nb::object seen = numpy_view(object, argument);
  check_in_place(object, seen, argument);
  if (!seen.is(object)) array.seen = std::make_shared<nb::object>(seen);
  const nb::object interface = seen.attr("__array_interface__");
  const nb::object data = interface["data"];
  if (writable && nb::cast<bool>(data[1])) complain_of_read_only(argument);
  array.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(data[0]));
  array.shape = nb::cast<std::vector<std::int64_t>>(seen.attr("shape"));
  array.strides = nb::cast<std::vector<std::int64_t>>(seen.attr("strides"));
  array.dtype = seen.attr("dtype");
  return array;
}

// An array of NumPy's own class, which needs no questions: by the buffer protocol, without the elements' format, that
// some types do not have. Nothing if it refuses that.
std::optional<Array> from_plain_numpy(nb::handle object, const std::string& argument, bool writable) {
  static const nb::handle plain = numpy("ndarray").release();  // which lives as long as NumPy
  if (!object.type().is(plain)) return std::nullopt;
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  Array array;
  array.data = static_cast<std::byte*>(view.buf);
  const bool read_only = view.readonly != 0;
  PyBuffer_Release(&view);
  if (writable && read_only) complain_of_read_only(argument);
  // The buffer's own strides are none of the array's where a dimension has one entry.
  array.shape = nb::cast<std::vector<std::int64_t>>(object.attr("shape"));
  array.strides = nb::cast<std::vector<std::int64_t>>(object.attr("strides"));
  array.dtype = object.attr("dtype");
  return array;
}

nb::object dtype_of(const nb::dlpack::dtype& type, const std::string& argument) {
  using nb::dlpack::dtype_code;
  const char* kind = nullptr;
  switch (static_cast<dtype_code>(type.code)) {
    case dtype_code::Int:
      kind = "int";
      break;
    case dtype_code::UInt:
      kind = "uint";
      break;
    case dtype_code::Float:
      kind = "float";
      break;
    case dtype_code::Complex:
      kind = "complex";
      break;
    case dtype_code::Bool:
      return numpy("dtype")("bool");
    case dtype_code::Bfloat:
      return numpy("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    default:
      break;
  }
  if (kind == nullptr || type.lanes != 1)
    throw Error(
        fmt::format("argument '{}' has elements of DLPack type {} with {} bits and {} lanes, which NumPy does "
                    "not know; look at it as bytes first",
                    argument, type.code, type.bits, type.lanes));
  return numpy("dtype")(fmt::format("{}{}", kind, type.bits));
}

Array from_dlpack(nb::handle object, const std::string& argument, bool writable) {
  Array array;
  nb::ndarray<nb::ro> seen;
  if (nb::ndarray<> open; nb::try_cast(object, open)) {
    seen = nb::ndarray<nb::ro>(open);
  } else if (writable || !nb::try_cast(object, seen)) {
    throw Error(fmt::format("argument '{}' is a {} that does not hand out its memory by DLPack{}", argument,
                            kind_of(object),
                            writable ? " for writing; is it read-only, or does it need a gradient?"
                                     : "; is it sparse, or does it need a gradient?"));
  }
  array.seen = std::make_shared<nb::ndarray<nb::ro>>(seen);
  array.data = const_cast<std::byte*>(static_cast<const std::byte*>(seen.data()));
  array.dtype = or_complain(argument, object, [&] { return dtype_of(seen.dtype(), argument); });
  const auto bytes = element_bytes(array.dtype);
  for (std::size_t d = 0; d < seen.ndim(); ++d) {
    array.shape.push_back(static_cast<std::int64_t>(seen.shape(d)));
    array.strides.push_back(seen.stride(d) * bytes);
  }
  return array;
}

// NumPy's type of what __cuda_array_interface__ describes: `descr` says more than `typestr` about structs.
nb::object interface_type(nb::handle interface) {
  const nb::object typestr = interface["typestr"];
  if (nb::cast<std::string>(nb::str(typestr)).find('V') != std::string::npos &&
      nb::cast<bool>(interface.attr("__contains__")("descr"))) {
    // Not numpy.dtype, which makes a field of the padding of a struct.
    nb::object described = nb::module_::import_("tasuki.arguments").attr("described_type")(interface["descr"]);
    if (described.attr("itemsize").equal(numpy("dtype")(typestr).attr("itemsize"))) return described;
  }
  return numpy("dtype")(typestr);
}

Array from_cuda_interface(nb::handle object, const std::string& argument, bool writable) {
  Array array;
  bool read_only = false;
  bool masked = false;
  try {
    const nb::object interface = object.attr("__cuda_array_interface__");
    const auto get = [&](const char* name) { return nb::object(interface.attr("get")(name)); };
    array.dtype = interface_type(interface);
    array.shape = nb::cast<std::vector<std::int64_t>>(interface["shape"]);
    array.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(interface["data"][0]));
    read_only = nb::cast<bool>(interface["data"][1]);
    masked = !get("mask").is_none();
    if (const nb::object strides = get("strides"); !strides.is_none()) {
      array.strides = nb::cast<std::vector<std::int64_t>>(strides);
    } else {
      array.strides.resize(array.shape.size());
      std::int64_t stride = element_bytes(array.dtype);
      for (std::size_t d = array.shape.size(); d-- > 0; stride *= array.shape[d]) array.strides[d] = stride;
    }
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument '{}' is a {} whose __cuda_array_interface__ cannot be read: {}", argument,
                            kind_of(object), nb::cast<std::string>(nb::str(error.value()))));
  } catch (const std::bad_cast&) {
    throw Error(fmt::format("argument '{}' is a {} whose __cuda_array_interface__ has entries of a wrong type: {}",
                            argument, kind_of(object), shown(object.attr("__cuda_array_interface__"))));
  }
  if (array.strides.size() != array.shape.size())
    throw Error(fmt::format("argument '{}' is a {} whose __cuda_array_interface__ has {} extents and {} strides",
                            argument, kind_of(object), array.shape.size(), array.strides.size()));
  if (masked) throw Error(fmt::format("argument '{}' is masked; give the array without its mask", argument));
  if (writable && read_only)
    throw Error(fmt::format("argument '{}' is read-only, but Tasuki writes into it; give a writable array", argument));
  return array;
}

// DLPack first: more libraries have it for every type of theirs, but not for structs, nor has Numba.
Array from_gpu(nb::handle object, const Place& place, const std::string& argument, bool writable) {
  Array array;
  const bool interface = nb::hasattr(object, "__cuda_array_interface__");
  try {
    array = nb::hasattr(object, "__dlpack__") ? from_dlpack(object, argument, writable)
                                              : from_cuda_interface(object, argument, writable);
  } catch (const Error&) {
    if (!interface) throw;
    array = from_cuda_interface(object, argument, writable);
  }
  array.where = Memory::device;
  array.gpu = gpu_of(array.data, place.gpu);
  return array;
}

// Shows a block's bytes to NumPy.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static std::byte nothing;  // buffers of no bytes have an address all the same
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "this memory has no content: only Tasuki makes it");
    return -1;
  }
  const auto* block = nb::inst_ptr<MemoryBlock>(self);
  std::byte* data = block->bytes() == 0 ? &nothing : block->data();
  if (data == nullptr) {
    PyErr_SetString(PyExc_BufferError, "this memory has been given back");
    return -1;
  }
  return PyBuffer_FillInfo(view, self, data, block->bytes(), 0, flags);
}

void check_elements(nb::handle dtype, const char* argument) {
  if (nb::cast<bool>(dtype.attr("hasobject")))
    throw Error(
        fmt::format("argument '{}': elements of type {} are Python objects, which mean nothing to another rank; "
                    "use numbers or a struct of numbers",
                    argument, shown(dtype)));
  if (element_bytes(dtype) == 0)
    throw Error(fmt::format("argument '{}': elements of type {} have no bytes", argument, shown(dtype)));
}

nb::object shared_array(const ContextHandle& context, const std::vector<std::int64_t>& shape, nb::handle dtype_value) {
  const std::shared_ptr<Owner>& owner = context.owner;
  nb::object dtype;
  std::int64_t bytes = 0;
  const int me = owner->context().rank();
  owner->agree("shared_array", {&me, 1}, [&] {
    dtype = dtype_from(dtype_value, "dtype");
    bytes = element_bytes(dtype);
    for (const std::int64_t extent : shape) {
      if (extent < 0)
        throw Error(fmt::format("argument 'shape' is ({}); extents must be 0 or more", fmt::join(shape, ", ")));
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        throw Error(fmt::format("argument 'shape' is ({}); that is more than 2^63 bytes", fmt::join(shape, ", ")));
    }
  });
  const std::shared_ptr<std::byte> memory = shared_alloc(owner->context(), bytes);
  auto block = std::make_unique<MemoryBlock>(owner, memory, memory.get(), bytes, "memory of a shared_array", 0);
  return numpy_array(nb::cast(block.release(), nb::rv_policy::take_ownership), dtype, nb::cast(shape), nb::none());
}

}  // namespace

std::int64_t Array::low() const {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    if (strides[d] < 0) sum += strides[d] * (shape[d] - 1);
  }
  return sum;
}

std::int64_t Array::high() const {
  std::int64_t sum = element_bytes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    if (strides[d] > 0) sum += strides[d] * (shape[d] - 1);
  }
  return sum;
}

bool Array::is_contiguous() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  std::int64_t expected = element_bytes;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

Layout Array::layout() const {
  Layout all = Layout::bytes(element_bytes);
  for (std::size_t d = shape.size(); d-- > 0;) all = Layout::hvector(shape[d], 1, strides[d], all);
  return all;
}

void Array::check_unmoved(const std::string& what) const {
  const void* now = data;
  if (where == Memory::host && PyObject_CheckBuffer(object.ptr()) != 0) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES) != 0) nb::raise_python_error();
    now = view.buf;
    PyBuffer_Release(&view);
  } else if (nb::hasattr(object, "data_ptr")) {  // PyTorch
    now = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(object.attr("data_ptr")()));
  }
  if (now != data)
    throw Error(
        fmt::format("{} has moved from {} to {} since it was given to Tasuki; plans bind addresses once, so make "
                    "the field or operation again after resizing its array",
                    what, fmt::ptr(data), fmt::ptr(now)));
}

Array array_from(nb::handle object, const std::string& argument, bool writable, bool on_gpu_too) {
  if (std::optional<Array> plain = from_plain_numpy(object, argument, writable)) {
    plain->object = nb::borrow(object);
    check_elements(plain->dtype, argument.c_str());
    plain->element_bytes = element_bytes(plain->dtype);
    return *std::move(plain);
  }
  if (writable && nb::hasattr(object, "requires_grad") && nb::object(object.attr("requires_grad")).is(nb::bool_(true)))
    throw Error(
        fmt::format("argument '{}' is a {} that needs a gradient, which would miss what Tasuki writes; use its "
                    "detach(), and a reverse halo for the gradient",
                    argument, kind_of(object)));
  Array array;
  const Place place = place_of(object, argument);
  if (place.where == Memory::device) {
    if (!on_gpu_too)
      throw Error(
          fmt::format("argument '{}' is a {} on a GPU; this call takes memory of the CPU only: copy it to the "
                      "host first",
                      argument, kind_of(object)));
    array = from_gpu(object, place, argument, writable);
  } else if (nb::hasattr(object, "__array_interface__") || PyObject_CheckBuffer(object.ptr()) != 0) {
    array = from_numpy(object, argument, writable);
  } else if (nb::hasattr(object, "__dlpack__")) {
    array = from_dlpack(object, argument, writable);
  } else {
    throw Error(
        fmt::format("argument '{}' is a {}, which shows no memory; give an array of NumPy, PyTorch or another "
                    "library with the buffer protocol, __array_interface__, __cuda_array_interface__ or DLPack",
                    argument, kind_of(object)));
  }
  array.object = nb::borrow(object);
  // A field keeps its own memory; a view of it would be taken for a user's, who must give it up before `free`.
  if (nb::isinstance<PyField>(object)) array.seen.reset();
  array.dtype = dtype_from(array.dtype, argument.c_str());
  array.element_bytes = element_bytes(array.dtype);
  return array;
}

void check_gpu(const Array& array, const Context& context, const std::string& argument) {
  if (array.where == Memory::host) return;
  if (const std::string why = why_no_gpu(); !why.empty())
    throw Error(fmt::format("argument '{}' is on a GPU, but this rank cannot use one: {}", argument, why));
  if (!uses_gpu(context) || array.gpu < 0) return;
  const int mine = use_gpu(context);
  if (array.gpu != mine && array.high() > 0)
    throw Error(
        fmt::format("argument '{}' is on GPU {}, but this rank uses GPU {}; call tasuki.use_gpu(context) and select "
                    "the GPU it returns (cupy.cuda.Device(n).use(), torch.cuda.set_device(n)) before making arrays",
                    argument, array.gpu, mine));
}

nb::object dtype_from(nb::handle value, const char* argument) {
  nb::object dtype;
  try {
    dtype = numpy("dtype")(value);
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("argument '{}' is {}, which is no type of NumPy: {}", argument, shown(value),
                            nb::cast<std::string>(nb::str(error.value()))));
  }
  check_elements(dtype, argument);
  return dtype;
}

std::int64_t element_bytes(nb::handle dtype) {
  return nb::cast<std::int64_t>(dtype.attr("itemsize"));
}

// NumPy writes it in Python, so the commonest names are made here.
std::string dtype_name(nb::handle dtype) {
  constexpr int kOfNumPy = 1;  // what libraries add has 2, other orders of bytes 0
  if (nb::cast<int>(dtype.attr("isbuiltin")) == kOfNumPy) {
    const auto kind = nb::cast<std::string>(dtype.attr("kind"));
    for (const auto& [letter, word] : {std::pair{"i", "int"}, {"u", "uint"}, {"f", "float"}, {"c", "complex"}})
      if (kind == letter) return fmt::format("{}{}", word, element_bytes(dtype) * 8);
  }
  return nb::cast<std::string>(nb::str(dtype));
}

DType number_type(nb::handle dtype) {
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  const std::int64_t bits = element_bytes(dtype) * 8;
  if (!nb::cast<bool>(dtype.attr("isnative"))) return DType::none;
  // NumPy makes the name in Python, so it is asked for only where it may be this one.
  const bool other_half = bits == 16 && kind != "i" && kind != "u";
  if (other_half && nb::cast<std::string>(dtype.attr("name")) == "bfloat16") return DType::bf16;
  const bool known = kind == "i" || kind == "u" || (kind == "f" && bits <= 64) || (kind == "c" && bits <= 128);
  if (!known) return DType::none;
  return dtype_from_string(fmt::format("{}{}", kind, bits));
}

std::string MemoryBlock::in_use() const {
  if (data_ == nullptr) return {};
  const nb::object self = nb::find(this);
  if (!self.is_valid() || Py_REFCNT(self.ptr()) <= references_ + 1) return {};  // `self` is one
  return fmt::format(
      "the {} is still looked at by an array; delete the array first, and free an operation that it was given to",
      name_);
}

nb::object numpy_array(nb::handle block, nb::handle dtype, nb::handle shape, nb::handle strides, std::int64_t offset) {
  return numpy("ndarray")(shape, dtype, block, offset, strides);
}

void bind_memory(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
  nb::class_<MemoryBlock>(m, "_Block", nb::type_slots(slots), "Bytes of Tasuki that NumPy arrays look at.");
  m.def("shared_array", shared_array, nb::arg("context"), nb::arg("shape"), nb::arg("dtype") = "float64",
        nb::sig("def shared_array(context: Context, shape: Sequence[SupportsIndex], "
                "dtype: DTypeLike = 'float64') -> NDArray[Any]"),
        R"(A NumPy array, filled with zeros, that the ranks of the same host can reach.

Transfers and broadcasts from and to it need no staging. Local: a rank may make one alone; extents may be 0. The memory is given back with the last array that looks at it.)");
}

}  // namespace tasuki::python
