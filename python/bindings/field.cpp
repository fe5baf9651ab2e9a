// Field: made from a type or from the user's arrays, and seen as NumPy arrays.
#include "field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>

#include "arguments.hpp"
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

// The padding at the end of each row that the array's strides tell of. Throws if the array is not laid out like a
// field.
std::int64_t checked_padding(const Array& array, const Box& own, const Width& shadow, const std::string& argument) {
  std::vector<std::int64_t> expected;
  for (std::size_t d = 0; d < static_cast<std::size_t>(own.ndims); ++d)
    expected.push_back(own.extent(static_cast<int>(d)) + shadow.lo[d] + shadow.hi[d]);
  if (array.shape != expected)
    throw Error(fmt::format("argument '{}' has shape ({}); on this rank the box with its shadow has shape ({})",
                            argument, fmt::join(array.shape, ", "), fmt::join(expected, ", ")));
  if (expected.size() < 2 || array.is_contiguous()) {
    if (array.is_contiguous()) return 0;
    throw Error(fmt::format("argument '{}' has a stride of {} bytes; neighbouring elements must be {} bytes apart",
                            argument, array.strides[0], array.element_bytes));
  }
  const std::size_t last = expected.size() - 1;
  const std::int64_t row = array.strides[last - 1] / array.element_bytes;
  std::vector<std::int64_t> strides(expected.size(), array.element_bytes);
  std::int64_t stride = row * array.element_bytes;
  for (std::size_t d = last; d-- > 0; stride *= expected[d]) strides[d] = stride;
  if (row < expected[last] || array.strides != strides)
    throw Error(
        fmt::format("argument '{}' of shape ({}) has strides of ({}) bytes; a field is in C order, where only the "
                    "rows of the last dimension may be padded: use numpy.ascontiguousarray",
                    argument, fmt::join(expected, ", "), fmt::join(array.strides, ", ")));
  return row - expected[last];
}

struct FieldArguments {
  nb::object dtype;
  FieldOptions options;
  std::vector<Array> sources;
};

void read_arguments(FieldArguments& all, const Grid& grid, nb::handle dtype, nb::handle shadow,
                    std::optional<int> copies, std::int64_t pad, nb::handle memory) {
  all.options.shadow = width_from(shadow, grid.ndims(), "shadow");
  all.options.pad = pad;
  if (memory.is_none()) {
    all.options.copies = copies.value_or(1);
    all.dtype = dtype.is_none() ? dtype_from(nb::str("float64"), "dtype") : dtype_from(dtype, "dtype");
    return;
  }
  const std::vector<nb::object> list = as_list(memory);
  all.options.copies = copies.value_or(static_cast<int>(list.size()));
  if (pad != 0)
    throw Error(
        fmt::format("argument 'pad' is {}, but 'memory' was given, whose strides say it: leave 'pad' out", pad));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string argument = list.size() == 1 ? "memory" : fmt::format("memory[{}]", i);
    Array array = array_from(list[i], argument, true);
    const std::int64_t padding = checked_padding(array, grid.owned(), all.options.shadow, argument);
    if (i == 0) {
      all.options.pad = padding;
      all.dtype = dtype.is_none() ? array.dtype : dtype_from(dtype, "dtype");
    }
    if (!array.dtype.equal(all.dtype))
      throw Error(fmt::format("argument '{}' has elements of type {}, but {} is {}", argument, shown(array.dtype),
                              dtype.is_none() ? "that of memory[0]" : "argument 'dtype'", shown(all.dtype)));
    if (padding != all.options.pad)
      throw Error(fmt::format("memory[0] has rows padded by {} elements, but {} by {}; they must be alike",
                              all.options.pad, argument, padding));
    all.sources.push_back(std::move(array));
  }
}

void make_field(PyField* self, const GridHandle& grid, nb::handle dtype, nb::handle shadow, std::optional<int> copies,
                std::int64_t pad, nb::handle memory, const std::string& name) {
  const std::shared_ptr<Owner>& owner = grid.held->shared_owner();
  FieldArguments all;
  owner->agree(fmt::format("Field '{}'", name),
               [&] { read_arguments(all, grid.grid(), dtype, shadow, copies, pad, memory); });
  all.options.name = name;
  const std::int64_t bytes = element_bytes(all.dtype);
  const DType number = number_type(all.dtype);
  if (memory.is_none()) {
    new (self) PyField(owner, AnyField(grid.grid(), all.options, bytes, number), all.dtype, {});
    return;
  }
  std::vector<void*> pointers;
  for (const Array& array : all.sources) pointers.push_back(array.data);
  new (self) PyField(owner, AnyField(grid.grid(), all.options, bytes, number, pointers), all.dtype, all.sources);
}

// Shows the current copy to whoever asks for a buffer; it is NumPy's array that is shown and kept.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    auto* field = nb::inst_ptr<PyField>(self);
    return PyObject_GetBuffer(field->array(field->core().current()).ptr(), view, flags);
  } catch (nb::python_error& error) {
    error.restore();
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

PyField::PyField(std::shared_ptr<Owner> owner, AnyField core, nb::object dtype, std::vector<Array> sources)
    : Held<AnyField>(std::move(owner), std::move(core)), dtype_(std::move(dtype)), sources_(std::move(sources)) {}

nb::object PyField::array(int copy) {
  Copy& views = copies_[static_cast<std::size_t>(copy)];
  if (views.array.is_valid()) return views.array;
  const AnyField& field = core();
  std::byte* data = field.raw(copy);
  if (!views.block.is_valid()) {
    // The core's storage keeps memory of its own; memory of the user's is kept by its array.
    std::shared_ptr<void> keep = field.storage();
    if (is_wrapped()) keep = std::make_shared<nb::object>(sources_[static_cast<std::size_t>(copy)].object);
    auto block = std::make_unique<MemoryBlock>(shared_owner(), std::move(keep), data, field.bytes(),
                                               fmt::format("memory of field '{}'", field.name()),
                                               is_wrapped() ? std::numeric_limits<int>::max() - 1 : 1);
    views.block = nb::cast(block.release(), nb::rv_policy::take_ownership);
  }
  const int ndims = field.grid().ndims();
  Index strides = field.strides();
  for (auto& stride : strides) stride *= field.element_bytes();
  views.array = numpy_array(views.block, dtype_, tuple_of(field.extents(), ndims), tuple_of(strides, ndims));
  return views.array;
}

nb::object PyField::owned(int copy) {
  Copy& views = copies_[static_cast<std::size_t>(copy)];
  if (!views.owned.is_valid()) views.owned = array(copy)[slices(core().local_owned())];
  return views.owned;
}

void PyField::drop_views() const {
  for (Copy& copy : copies_) {
    copy.owned.reset();
    copy.array.reset();
  }
}

std::string PyField::in_use() const {
  drop_views();
  return {};
}

void PyField::free() {
  drop_views();
  for (const Copy& copy : copies_) {
    if (!copy.block.is_valid()) continue;
    const std::string why = nb::inst_ptr<MemoryBlock>(copy.block)->in_use();
    if (!why.empty()) throw Error(fmt::format("Field '{}': free: {}", core().name(), why));
  }
  core().free();
  for (Copy& copy : copies_) copy.block.reset();
  sources_.clear();
}

void bind_field(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
  nb::class_<PyField> field(m, "Field", nb::type_slots(slots),
                            R"(A distributed array over a grid, with a shadow for the neighbours' cells.

It is an array to every library: numpy.asarray(field), torch.from_dlpack(field) and memoryview(field) look at the current
copy in place. Local indices start at 0 and include the shadow.)");
  field
      .def("__init__", make_field, nb::arg("grid"), nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("shadow") = 1,
           nb::arg("copies") = nb::none(), nb::arg("pad") = 0, nb::arg("memory") = nb::none(),
           nb::arg("name") = "field",
           nb::sig(
               "def __init__(self, grid: Grid, dtype: DTypeLike | None = None, *, shadow: Width = 1, "
               "copies: int | None = None, pad: int = 0, memory: object | None = None, name: str = 'field') -> None"),
           R"(Collective, with the same arguments on all ranks (memory and its address may differ).

dtype: anything that numpy.dtype takes, without Python objects; None: float64, or that of `memory`.
shadow: cells allocated around the owned box: an int, or one entry a dimension, an int or a pair (below, above).
copies: 1, or 2: a pair of buffers that `swap` exchanges.
pad: extra elements at the end of each row of the last dimension.
memory: an array of this rank's box with its shadow, in C order (rows may be padded), or a list with one a copy; it is
used in place. None: memory of Tasuki, zero-filled, that the ranks of the same host can reach.
Raises tasuki.Error on all ranks if an array on one has the wrong dtype, shape, strides or device or is read-only, or if
arguments differ between ranks.)")
      .def_prop_ro(
          "array", [](PyField& f) { return f.array(f.core().current()); }, nb::sig("def array(self) -> NDArray[Any]"),
          "The current copy in place: all local cells, shadow included, padding excluded.")
      .def_prop_ro(
          "owned", [](PyField& f) { return f.owned(f.core().current()); }, nb::sig("def owned(self) -> NDArray[Any]"),
          "The current copy in place, without the shadow: the cells of `box`.")
      .def_prop_ro(
          "next", [](PyField& f) { return f.array(next_copy(f)); }, nb::sig("def next(self) -> NDArray[Any]"),
          "The copy that `swap` will show, shadow included; with one copy, `array`.")
      .def(
          "swap", [](PyField& f) { f.core().swap(); },
          "The other copy becomes the current one. Local. Raises with one copy.")
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
      .def_prop_ro("name", [](const PyField& f) { return f.core().name(); })
      .def_prop_ro(
          "nbytes", [](const PyField& f) { return f.core().bytes(); }, "Bytes of one copy, padding included.")
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
          [](PyField& f, nb::kwargs options) {
            return nb::module_::import_("numpy").attr("asarray")(f.array(f.core().current()), **options);
          },
          nb::sig("def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]"))
      .def(
          "__dlpack__",
          [](PyField& f, nb::kwargs options) { return f.array(f.core().current()).attr("__dlpack__")(**options); },
          nb::sig("def __dlpack__(self, **options: Any) -> Any"))
      .def(
          "__dlpack_device__", [](const PyField&) { return nb::make_tuple(1, 0); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__repr__", [](const PyField& f) {
        return fmt::format("<tasuki.Field '{}' {} {}>", f.core().name(), nb::cast<std::string>(nb::str(f.dtype())),
                           nb::cast<std::string>(nb::str(tuple_of(f.core().extents(), f.core().grid().ndims()))));
      });
}

}  // namespace tasuki::python
