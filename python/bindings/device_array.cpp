// DeviceArray, by the protocols __cuda_array_interface__ and DLPack; and the calls that are about this rank's GPU.
#include "device_array.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "arguments.hpp"
#include "module.hpp"
#include "owner.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

std::int64_t item_bytes(const DeviceArray& array) {
  return nb::cast<std::int64_t>(array.dtype.attr("itemsize"));
}

nb::dlpack::dtype dlpack_type(nb::handle dtype) {
  using nb::dlpack::dtype_code;
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  const auto bits = static_cast<std::uint8_t>(nb::cast<int>(dtype.attr("itemsize")) * 8);
  const auto type = [bits](dtype_code code) { return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1}; };
  if (nb::cast<bool>(dtype.attr("isnative"))) {
    if (kind == "i") return type(dtype_code::Int);
    if (kind == "u") return type(dtype_code::UInt);
    if (kind == "f") return type(dtype_code::Float);
    if (kind == "c") return type(dtype_code::Complex);
    if (kind == "b") return type(dtype_code::Bool);
    if (nb::cast<std::string>(dtype.attr("name")) == "bfloat16") return type(dtype_code::Bfloat);
  }
  throw nb::buffer_error(fmt::format("DLPack has no type for elements of type {}", shown(dtype)).c_str());
}

// The data must be ready for the consumer's stream: the standard's numbers are not CUDA's.
void make_ready(const DeviceArray& array, nb::handle stream) {
  std::int64_t number = 1;  // None: the legacy default stream
  if (!stream.is_none() && !as_integer(stream, number))
    throw nb::type_error(
        fmt::format("__dlpack__: argument 'stream' is {}; DLPack has None or an int", shown(stream)).c_str());
  if (number == -1) return;
  if (number < 1)
    throw nb::value_error(
        fmt::format("__dlpack__: argument 'stream' is {}; DLPack has None, -1 (do not synchronise), 1 (legacy default "
                    "stream), 2 (per-thread default stream) or a stream's address",
                    number)
            .c_str());
  select_gpu(array.gpu);
  order(current_stream(array.library), stream_from(nb::int_(number)));
}

nb::object dlpack(nb::handle self, const nb::kwargs& options) {
  const auto& array = inside<DeviceArray>(self);
  nb::dict rest;
  nb::object stream = nb::none();
  for (const auto& [key, value] : options) {
    if (nb::cast<std::string>(key) == "stream") {
      stream = nb::borrow(value);
    } else {
      rest[key] = value;
    }
  }
  const auto type = dlpack_type(array.dtype);
  std::vector<std::size_t> shape(array.shape.begin(), array.shape.end());
  std::vector<std::int64_t> strides;
  for (const std::int64_t stride : array.strides) strides.push_back(stride / item_bytes(array));
  const nb::ndarray<nb::array_api> view(array.data, shape.size(), shape.data(), self, strides.data(), type,
                                        nb::device::cuda::value, array.gpu);
  nb::object capsule = nb::cast(view, nb::rv_policy::reference).attr("__dlpack__")(**rest);
  make_ready(array, stream);
  return capsule;
}

nb::dict cuda_array_interface(const DeviceArray& array) {
  nb::dict result;
  const auto ndim = static_cast<int>(array.shape.size());
  result["shape"] = tuple_of(array.shape, ndim);
  result["typestr"] = array.dtype.attr("str");
  if (!array.dtype.attr("fields").is_none()) result["descr"] = array.dtype.attr("descr");
  result["data"] = nb::make_tuple(array.size() == 0 ? 0 : reinterpret_cast<std::uintptr_t>(array.data), false);
  result["strides"] = array.is_contiguous() ? nb::object(nb::none()) : nb::object(tuple_of(array.strides, ndim));
  // No stream to wait for: the order of exchanges is the order of the streams that the user puts them into, and a wait
  // on the host, which is what consumers do here, would undo that.
  result["stream"] = nb::none();
  result["version"] = 3;
  return result;
}

nb::object refuse_numpy(const DeviceArray& array, const nb::args&, const nb::kwargs&) {
  throw nb::type_error(
      fmt::format("this array is on GPU {}, where NumPy cannot look; use field.download(), or cupy.asarray or "
                  "torch.as_tensor to look at it there",
                  array.gpu)
          .c_str());
}

void wait_for(const ContextHandle& context, nb::handle stream) {
  const Context& core = context.owner->context();
  if (uses_gpu(core)) select_gpu(use_gpu(core));
  synchronize(core, stream_or_current(stream, Library::none));
}

}  // namespace

std::int64_t DeviceArray::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool DeviceArray::is_contiguous() const {
  std::int64_t expected = item_bytes(*this);
  for (std::size_t d = shape.size(); d-- > 0; expected *= shape[d])
    if (shape[d] > 1 && strides[d] != expected) return false;
  return true;
}

DeviceArray DeviceArray::at(nb::handle key) const {
  std::vector<nb::object> entries;
  if (nb::isinstance<nb::tuple>(key)) {
    entries = nb::cast<std::vector<nb::object>>(key);
  } else {
    entries.push_back(nb::borrow(key));
  }
  const auto is_dots = [](const nb::object& entry) { return entry.ptr() == Py_Ellipsis; };
  const auto dots = std::find_if(entries.begin(), entries.end(), is_dots);
  const nb::object all = nb::slice(nb::none(), nb::none(), nb::none());
  if (dots == entries.end()) {
    entries.resize(std::max(entries.size(), shape.size()), all);
  } else {
    const std::size_t missing = shape.size() - std::min(shape.size(), entries.size() - 1);
    const auto at = entries.erase(dots);
    entries.insert(at, missing, all);
  }
  if (entries.size() != shape.size())
    throw nb::index_error(
        fmt::format("{} indices, but the array has {} dimensions", entries.size(), shape.size()).c_str());
  DeviceArray part = *this;
  part.shape.clear();
  part.strides.clear();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t index = 0;
    if (nb::isinstance<nb::slice>(entries[d])) {
      Py_ssize_t start = 0;
      Py_ssize_t stop = 0;
      Py_ssize_t step = 0;
      if (PySlice_Unpack(entries[d].ptr(), &start, &stop, &step) != 0) nb::raise_python_error();
      if (step < 1) throw nb::index_error(fmt::format("a slice has step {}; it must be positive", step).c_str());
      part.shape.push_back(PySlice_AdjustIndices(shape[d], &start, &stop, step));
      part.strides.push_back(strides[d] * step);
      index = part.shape.back() == 0 ? 0 : start;
    } else if (!as_integer(entries[d], index)) {
      throw nb::index_error(
          fmt::format("index {} is no slice, integer or '...'; other libraries have more: cupy.asarray(array)",
                      shown(entries[d]))
              .c_str());
    } else {
      if (index < -shape[d] || index >= shape[d])
        throw nb::index_error(fmt::format("index {} is out of bounds for extent {}", index, shape[d]).c_str());
      if (index < 0) index += shape[d];
    }
    part.data += index * strides[d];
  }
  return part;
}

void bind_device(nb::module_& m) {
  nb::class_<DeviceArray>(m, "DeviceArray", R"(Memory on this rank's GPU, looked at in place.

cupy.asarray(array), torch.as_tensor(array, device='cuda'), torch.from_dlpack(array), jax.dlpack.from_dlpack(array) and
numba.cuda.as_cuda_array(array) look at the same memory, without a copy.)")
      .def_prop_ro(
          "shape", [](const DeviceArray& a) { return tuple_of(a.shape, static_cast<int>(a.shape.size())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const DeviceArray& a) { return tuple_of(a.strides, static_cast<int>(a.strides.size())); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In bytes.")
      .def_prop_ro("ndim", [](const DeviceArray& a) { return a.shape.size(); })
      .def_prop_ro("size", &DeviceArray::size, "Number of elements.")
      .def_prop_ro(
          "dtype", [](const DeviceArray& a) { return a.dtype; }, nb::sig("def dtype(self) -> dtype[Any]"))
      .def_prop_ro(
          "gpu", [](const DeviceArray& a) { return a.gpu; }, "Ordinal of the GPU, as CUDA counts in this process.")
      .def(
          "__getitem__", [](const DeviceArray& a, nb::handle key) { return a.at(key); }, nb::arg("key"),
          nb::sig("def __getitem__(self, key: Any) -> DeviceArray"),
          "A part in place: slices with positive steps, integers, `...`.")
      .def_prop_ro(
          "__cuda_array_interface__", cuda_array_interface,
          nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
          "Version 3, without a stream: consumers order their work by the streams that exchanges are put into.")
      .def("__dlpack__", dlpack, nb::sig("def __dlpack__(self, **options: Any) -> Any"),
           "`stream` waits, on the GPU, for the current stream of the library whose memory it is.")
      .def(
          "__dlpack_device__", [](const DeviceArray& a) { return nb::make_tuple(nb::device::cuda::value, a.gpu); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__array__", refuse_numpy, nb::sig("def __array__(self, *arguments: Any, **options: Any) -> NoReturn"))
      .def("__repr__", [](const DeviceArray& a) {
        return fmt::format("<tasuki.DeviceArray {} {} on GPU {}>", nb::cast<std::string>(nb::str(a.dtype)),
                           nb::cast<std::string>(nb::str(tuple_of(a.shape, static_cast<int>(a.shape.size())))), a.gpu);
      });
  m.def(
      "use_gpu", [](const ContextHandle& context) { return use_gpu(context.owner->context()); }, nb::arg("context"),
      R"(Settles which GPU this rank uses and finds out which ranks can store into each other's GPU memory; its ordinal.

The current CUDA device if this process has chosen one other than the first, else one by the rank's place on its host.
Select the same in other libraries: cupy.cuda.Device(n).use(), torch.cuda.set_device(n). Making a field on the device
does the same. Collective; raises tasuki.Error on all ranks if a rank has no GPU. Later calls only return the ordinal.)");
  m.def("why_no_gpu", &why_no_gpu,
        "Empty if this process can use a GPU; else what is missing: CUDA in this build, a driver, a device. Local.");
  m.def("synchronize", wait_for, nb::arg("context"), nb::arg("stream") = nb::none(),
        nb::sig("def synchronize(context: Context, stream: Any = None) -> None"),
        R"(Waits until the work in `stream` is done, with other Python threads running. Local.

stream: as for `Operation.start`; None: the current one of CuPy or PyTorch if the process uses exactly one of them, else
the legacy default stream. Raises tasuki.Error if an exchange has failed, of any context of this process on that GPU, if
a rank of this context has died, or at its deadline. Returns at once where this process has used no GPU.)");
  m.def(
      "_stream_address",
      [](nb::handle stream) { return reinterpret_cast<std::uintptr_t>(stream_or_current(stream, Library::none)); },
      nb::arg("stream").none());
}

}  // namespace tasuki::python
