// Field: made from a type or from the user's arrays, and seen as arrays of NumPy or on a GPU.
#include "field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "arguments.hpp"
#include "device_array.hpp"
#include "grid.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

// Copies of a field: one array, or a list or tuple of them.
std::vector<nb::object> as_list(nb::handle memory) {
  if (nb::isinstance<nb::list>(memory) || nb::isinstance<nb::tuple>(memory))
    return nb::cast<std::vector<nb::object>>(memory);
  return {nb::borrow(memory)};
}

// Throws if the array does not have the shape of the field on this rank.
void check_shape(const Array& array, const Box& own, const Width& shadow, const std::string& argument) {
  std::vector<std::int64_t> expected;
  for (std::size_t d = 0; d < static_cast<std::size_t>(own.ndims); ++d)
    expected.push_back(own.extent(static_cast<int>(d)) + shadow.lo[d] + shadow.hi[d]);
  if (array.shape != expected)
    throw Error(fmt::format("argument '{}' has shape ({}); on this rank the box with its shadow has shape ({})",
                            argument, fmt::join(array.shape, ", "), fmt::join(expected, ", ")));
}

// Whether cells of the two lie alike: strides of dimensions without a second cell mean nothing.
bool alike(const Array& a, const Array& b) {
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    if (a.shape[d] == 0) return true;
    if (a.shape[d] > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

struct FieldArguments {
  nb::object dtype;
  FieldOptions options;
  bool wraps = false;
  std::vector<Array> sources;
};

std::string name_of(std::size_t i, std::size_t count) {
  return count == 1 ? "memory" : fmt::format("memory[{}]", i);
}

void read_arguments(FieldArguments& all, const Grid& grid, nb::handle dtype, nb::handle shadow,
                    std::optional<int> copies, std::int64_t pad, nb::handle memory) {
  all.options.shadow = width_from(shadow, grid.ndims(), "shadow");
  all.options.pad = pad;
  if (std::string place; memory.is_none() || nb::try_cast(memory, place)) {
    if (!memory.is_none() && place != "host" && place != "device")
      throw Error(
          fmt::format("argument 'memory' is {}; it must be 'host', 'device', an array, or a list with one array a copy",
                      shown(memory)));
    if (place == "device") all.options.memory = Memory::device;
    all.options.copies = copies.value_or(1);
    all.dtype = dtype.is_none() ? dtype_from(nb::str("float64"), "dtype") : dtype_from(dtype, "dtype");
    return;
  }
  all.wraps = true;
  const std::vector<nb::object> list = as_list(memory);
  if (list.empty())
    throw Error(fmt::format("argument 'memory' is {}, an empty list; it needs one array a copy", shown(memory)));
  all.options.copies = copies.value_or(static_cast<int>(list.size()));
  if (pad != 0)
    throw Error(
        fmt::format("argument 'pad' is {}, but 'memory' was given, whose strides say it: leave 'pad' out", pad));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string argument = name_of(i, list.size());
    Array array = array_from(list[i], argument, true, true);
    check_shape(array, grid.owned(), all.options.shadow, argument);
    if (i == 0) {
      all.options.strides = array.strides;
      all.options.memory = array.where;
      all.dtype = dtype.is_none() ? array.dtype : dtype_from(dtype, "dtype");
    }
    if (!array.dtype.equal(all.dtype))
      throw Error(fmt::format("argument '{}' has elements of type {}, but {} is {}", argument, shown(array.dtype),
                              dtype.is_none() ? "that of memory[0]" : "argument 'dtype'", shown(all.dtype)));
    if (i > 0 && !alike(all.sources[0], array))
      throw Error(fmt::format("memory[0] has strides of ({}) bytes, but {} of ({}); they must be alike",
                              fmt::join(all.sources[0].strides, ", "), argument, fmt::join(array.strides, ", ")));
    if (array.where != all.options.memory)
      throw Error(fmt::format("memory[0] is on the {}, but {} on the {}; they must be alike",
                              to_string(all.options.memory), argument, to_string(array.where)));
    check_gpu(array, grid.context(), argument);
    all.sources.push_back(std::move(array));
  }
}

void make_field(PyField* self, const GridHandle& grid, nb::handle dtype, nb::handle shadow, std::optional<int> copies,
                std::int64_t pad, nb::handle memory, const std::string& name) {
  const std::shared_ptr<Owner>& owner = grid.held->shared_owner();
  FieldArguments all;
  owner->agree(fmt::format("Field '{}'", name), [&](Named& agreement) {
    read_arguments(all, grid.grid(), dtype, shadow, copies, pad, memory);
    agreement.same("memory", all.wraps ? "given" : "Tasuki's");
    // The core knows numbers and sizes, but two structs of one size apart only by this.
    agreement.same("dtype", nb::cast<std::string>(nb::str(all.dtype)));
  });
  all.options.name = name;
  const std::int64_t bytes = element_bytes(all.dtype);
  const DType number = number_type(all.dtype);
  if (!all.wraps) {
    new (self) PyField(owner, AnyField(grid.grid(), all.options, bytes, number), all.dtype, {});
    return;
  }
  std::vector<void*> pointers;
  for (const Array& array : all.sources) pointers.push_back(array.data);
  const AnyField field(grid.grid(), all.options, bytes, number, pointers);
  if (field.memory() == Memory::device) {  // which GPU this rank uses is settled now at the latest
    owner->agree(fmt::format("Field '{}'", name), [&] {
      for (std::size_t i = 0; i < all.sources.size(); ++i)
        check_gpu(all.sources[i], owner->context(), name_of(i, all.sources.size()));
    });
  }
  new (self) PyField(owner, field, all.dtype, all.sources);
}

// Shows the current copy to whoever asks for a buffer; it is NumPy's array that is shown and kept.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    auto* field = &inside<PyField>(self);
    if (field->on_gpu())
      throw Error(
          fmt::format("Field '{}' is on a GPU, where this library cannot look; use download()", field->core().name()));
    return PyObject_GetBuffer(field->array(field->core().current()).ptr(), view, flags);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

int next_copy(const PyField& field) {
  return (field.core().current() + 1) % field.core().copies();
}

nb::tuple width_tuple(const Width& width, int ndims) {
  nb::list result;
  for (std::size_t d = 0; d < static_cast<std::size_t>(ndims); ++d)
    result.append(nb::make_tuple(width.lo[d], width.hi[d]));
  return nb::tuple(result);
}

Width width_of(const PyField& field, nb::handle width) {
  return width.is_none() ? field.core().shadow() : width_from(width, field.core().grid().ndims(), "width");
}

}  // namespace

void bind_field(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
  nb::class_<PyField> field(m, "Field", nb::type_slots(slots),
                            R"(A distributed array over a grid, with a shadow for the neighbours' cells.

It is an array to every library, which looks at the current copy in place: on the host numpy.asarray(field),
torch.from_dlpack(field), memoryview(field); on a GPU cupy.asarray(field), torch.from_dlpack(field),
jax.dlpack.from_dlpack(field). Local indices start at 0 and include the shadow.)");
  field
      .def("__init__", make_field, nb::arg("grid"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("shadow") = 1,
           nb::arg("copies") = nb::none(), nb::arg("pad") = 0, nb::arg("memory") = nb::none(),
           nb::arg("name") = "field",
           nb::sig("def __init__(self, grid: Grid, dtype: DTypeLike | None = None, *, shadow: Width = 1, "
                   "copies: SupportsIndex | None = None, pad: SupportsIndex = 0, "
                   "memory: object | Literal['host', 'device'] | None = None, name: str = 'field') -> None"),
           R"(Collective, with the same arguments on all ranks (memory and its address may differ).

dtype: anything that numpy.dtype takes, without Python objects; None: float64, or that of `memory`.
shadow: cells allocated around the owned box: an int, or one entry a dimension, an int or a pair (below, above).
copies: 1, or 2: a pair of buffers that `swap` exchanges.
pad: extra elements at the end of each row of the last dimension.
memory: an array of this rank's box with its shadow, or a list with one a copy; it is used in place, on the host or on
this rank's GPU. Its strides may be any with which no two elements share bytes: Fortran's order, padded rows, a part of
a larger array, a component of structures, `.real`, reversed. What lies between its elements stays as it is. 'host' or None: memory of Tasuki, zero-filled, that the ranks of the
same host can reach. 'device': such memory on this rank's GPU (see `use_gpu`).
Raises tasuki.Error on all ranks if an array on one has the wrong dtype, shape, strides or device or is read-only, or if
arguments differ between ranks.)")
      .def_prop_ro(
          "array", [](PyField& f) { return f.array(f.core().current()); }, nb::sig("def array(self) -> Any"),
          "The current copy in place: all local cells, shadow included, padding excluded. NumPy's, or a DeviceArray.")
      .def_prop_ro(
          "owned", [](PyField& f) { return f.owned(f.core().current()); }, nb::sig("def owned(self) -> Any"),
          "The current copy in place, without the shadow: the cells of `box`.")
      .def_prop_ro(
          "next", [](PyField& f) { return f.array(next_copy(f)); }, nb::sig("def next(self) -> Any"),
          "The copy that `swap` will show, shadow included; with one copy, `array`.")
      .def(
          "swap", [](PyField& f) { f.core().swap(); },
          "The other copy becomes the current one. Local. Raises with one copy.")
      .def(
          "upload", [](PyField& f, nb::handle values, nb::handle stream) { f.upload(values, stream); },
          nb::arg("values"), nb::arg("stream") = nb::none(),
          nb::sig("def upload(self, values: ArrayLike, stream: Any = None) -> None"),
          R"(Fills the current copy, shadow included, from the host: an array of `shape`, or what NumPy spreads to it.

On a GPU: after the work in `stream` (as for `Halo.start`), and done when it returns. Local.)")
      .def(
          "download", [](PyField& f, nb::handle stream) { return f.download(stream); }, nb::arg("stream") = nb::none(),
          nb::sig("def download(self, stream: Any = None) -> NDArray[Any]"),
          "A NumPy copy of the current copy, shadow included; on a GPU after the work in `stream`. Local.")
      .def(
          "boundary",
          [](const PyField& f, nb::handle width) {
            nb::list boxes;
            for (const Box& box : f.core().boundary(width_of(f, width))) boxes.append(slices(box));
            return boxes;
          },
          nb::arg("width") = nb::none(),
          nb::sig("def boundary(self, width: Width | None = None) -> list[tuple[slice, ...]]"),
          R"(The owned cells within `width` of a side of the box, as disjoint boxes of local indices: `array[box]`.

width: as `shadow`, which is the default. Boxes that would be empty are left out. Local.)")
      .def(
          "interior", [](const PyField& f, nb::handle width) { return slices(f.core().interior(width_of(f, width))); },
          nb::arg("width") = nb::none(), nb::sig("def interior(self, width: Width | None = None) -> tuple[slice, ...]"),
          "The owned cells that are not in `boundary(width)`, as one box of local indices; may be empty. Local.")
      .def(
          "free", [](PyField& f) { f.free(); },
          "Gives the memory back. Local. Raises if an operation uses the field or an array looks at it.");
  field
      .def_prop_ro(
          "box", [](const PyField& f) { return slices(f.core().owned()); },
          nb::sig("def box(self) -> tuple[slice, ...]"), "The owned cells in global indices.")
      .def_prop_ro(
          "local_box", [](const PyField& f) { return slices(f.core().local_owned()); },
          nb::sig("def local_box(self) -> tuple[slice, ...]"), "The owned cells in local indices.")
      .def_prop_ro(
          "shape", [](const PyField& f) { return tuple_of(f.core().extents(), f.core().grid().ndims()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Local cells, shadow included: `array.shape`.")
      .def_prop_ro("ndim", [](const PyField& f) { return f.core().grid().ndims(); })
      .def_prop_ro(
          "dtype", [](const PyField& f) { return f.dtype(); }, nb::sig("def dtype(self) -> dtype[Any]"))
      .def_prop_ro(
          "memory", [](const PyField& f) { return std::string(to_string(f.core().memory())); },
          nb::sig("def memory(self) -> Literal['host', 'device']"), "Where its bytes are.")
      .def_prop_ro("name", [](const PyField& f) { return f.core().name(); })
      .def_prop_ro(
          "nbytes", [](const PyField& f) { return f.core().bytes(); },
          "Bytes of one copy from its lowest element to its highest, padding included.")
      .def_prop_ro("copies", [](const PyField& f) { return f.core().copies(); })
      .def_prop_ro(
          "current", [](const PyField& f) { return f.core().current(); },
          "Number of the copy that `array` shows; advanced by `swap`.")
      .def_prop_ro(
          "shadow", [](const PyField& f) { return width_tuple(f.core().shadow(), f.core().grid().ndims()); },
          nb::sig("def shadow(self) -> tuple[tuple[int, int], ...]"),
          "Cells around the box, a pair (below, above) a dimension.")
      .def(
          "__array__",
          [](PyField& f, const nb::kwargs& options) {
            const nb::object array = f.array(f.core().current());
            if (f.on_gpu()) return array.attr("__array__")(**options);
            return nb::module_::import_("numpy").attr("asarray")(array, **options);
          },
          nb::sig("def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]"))
      .def_prop_ro(
          "__cuda_array_interface__",
          [](PyField& f) {
            if (!f.on_gpu()) throw nb::attribute_error("__cuda_array_interface__: the field is on the host");
            return nb::object(f.array(f.core().current()).attr("__cuda_array_interface__"));
          },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"), "On a GPU only: see DeviceArray.")
      .def(
          "__dlpack__",
          [](PyField& f, const nb::kwargs& options) {
            return f.array(f.core().current()).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **options: Any) -> Any"))
      .def(
          "__dlpack_device__",
          [](PyField& f) {
            return f.on_gpu() ? nb::make_tuple(nb::device::cuda::value, use_gpu(f.owner().context()))
                              : nb::make_tuple(nb::device::cpu::value, 0);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", &PyField::text);
}

}  // namespace tasuki::python
