// Layout: which bytes, with the meaning of MPI's derived datatypes.
#include "layout.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

using Numbers = std::vector<std::int64_t>;

nb::bytes pack(const Layout& layout, nb::handle array) {
  const Array from = array_from(array, "array", false);
  const Layout checked = layout_inside(nb::cast(layout), from, "array");
  nb::object packed = nb::steal(PyBytes_FromStringAndSize(nullptr, checked.size()));
  if (!packed.is_valid()) nb::raise_python_error();
  checked.pack(from.data, PyBytes_AsString(packed.ptr()));
  return nb::bytes(packed);
}

void unpack(const Layout& layout, nb::handle packed, nb::handle array) {
  const Array from = array_from(packed, "packed", false);
  const Array to = array_from(array, "array", true);
  const Layout checked = layout_inside(nb::cast(layout), to, "array");
  if (!from.is_contiguous() || from.high() != checked.size())
    throw Error(fmt::format("Layout.unpack: argument 'packed' has {} bytes{}; the layout has {}", from.high(),
                            from.is_contiguous() ? "" : ", not contiguous", checked.size()));
  checked.unpack(from.data, to.data);
}

nb::list blocks(const Layout& layout) {
  nb::list result;
  for (const Block& block : layout.blocks()) {
    nb::list dims;
    for (const Dim& dim : block.dims) dims.append(nb::make_tuple(dim.count, dim.stride));
    result.append(nb::make_tuple(block.offset, block.bytes, dims));
  }
  return result;
}

}  // namespace

Layout layout_inside(nb::handle value, const Array& array, const std::string& argument) {
  if (!nb::isinstance<Layout>(value))
    throw Error(fmt::format("argument '{}' has {} where a Layout belongs", argument, shown(value)));
  const Layout& layout = inside<Layout>(value);
  if (layout.size() > 0 && (layout.true_lower_bound() < array.low() || layout.true_upper_bound() > array.high()))
    throw Error(
        fmt::format("argument '{}': the layout names bytes {} to {}, but the array spans bytes {} to {} relative to "
                    "its first element",
                    argument, layout.true_lower_bound(), layout.true_upper_bound(), array.low(), array.high()));
  return layout;
}

void bind_layout(nb::module_& m) {
  nb::class_<Layout>(m, "Layout", R"(Which bytes, in which order, relative to a base; a value in normal form.

The constructors have the meaning of MPI's derived datatypes. Strides of `vector` and displacements of `indexed` count
extents of the element; those of `hvector`, `hindexed` and `structure` count bytes. Layouts that name the same bytes in
the same order are equal. Local; raises tasuki.Error for negative counts and offsets that leave 64 bits.)")
      .def_static("bytes", &Layout::bytes, nb::arg("count"), "`count` contiguous bytes.")
      .def_static(
          "of", [](nb::handle dtype) { return Layout::bytes(element_bytes(dtype_from(dtype, "dtype"))); },
          nb::arg("dtype"), nb::sig("def of(dtype: DTypeLike) -> Layout"), "One element of a NumPy type.")
      .def_static(
          "of_array", [](nb::handle array) { return array_from(array, "array", false, true).layout(); },
          nb::arg("array"), "The elements of an array in C order, relative to its first, by its shape and strides.")
      .def_static("contiguous", &Layout::contiguous, nb::arg("count"), nb::arg("element"))
      .def_static("vector", &Layout::vector, nb::arg("count"), nb::arg("block_length"), nb::arg("stride"),
                  nb::arg("element"))
      .def_static("hvector", &Layout::hvector, nb::arg("count"), nb::arg("block_length"), nb::arg("stride_bytes"),
                  nb::arg("element"))
      .def_static(
          "subarray",
          [](const Numbers& sizes, const Numbers& subsizes, const Numbers& starts, const Layout& element) {
            return Layout::subarray(sizes, subsizes, starts, element);
          },
          nb::arg("sizes"), nb::arg("subsizes"), nb::arg("starts"), nb::arg("element"),
          "A box of `subsizes` cells at `starts` in an array of `sizes` cells, in C order.")
      .def_static(
          "indexed",
          [](const Numbers& lengths, const Numbers& displacements, const Layout& element) {
            return Layout::indexed(lengths, displacements, element);
          },
          nb::arg("block_lengths"), nb::arg("displacements"), nb::arg("element"))
      .def_static(
          "hindexed",
          [](const Numbers& lengths, const Numbers& displacements, const Layout& element) {
            return Layout::hindexed(lengths, displacements, element);
          },
          nb::arg("block_lengths"), nb::arg("displacements"), nb::arg("element"))
      .def_static(
          "structure",
          [](const Numbers& lengths, const Numbers& displacements, const std::vector<Layout>& elements) {
            return Layout::structure(lengths, displacements, elements);
          },
          nb::arg("block_lengths"), nb::arg("displacements"), nb::arg("elements"))
      .def_static("resized", &Layout::resized, nb::arg("element"), nb::arg("lower_bound"), nb::arg("extent"))
      .def_prop_ro("size", &Layout::size, "Bytes named.")
      .def_prop_ro("extent", &Layout::extent)
      .def_prop_ro("lower_bound", &Layout::lower_bound)
      .def_prop_ro("true_lower_bound", &Layout::true_lower_bound, "Lowest byte offset named; 0 if none.")
      .def_prop_ro("true_upper_bound", &Layout::true_upper_bound, "One past the highest byte offset named; 0 if none.")
      .def_prop_ro(
          "pattern", [](const Layout& l) { return std::string(to_string(l.pattern())); },
          "'empty', 'contiguous', 'block_stride', 'stride' or 'list'.")
      .def_prop_ro("runs", &Layout::runs, "Number of maximal contiguous runs.")
      .def_prop_ro("overlaps", &Layout::overlaps, "True if some byte is named twice.")
      .def_prop_ro("blocks", blocks, nb::sig("def blocks(self) -> list[tuple[int, int, list[tuple[int, int]]]]"),
                   "The normal form: (offset, bytes, [(count, stride), ...]) each, outermost dimension first.")
      .def("pack", pack, nb::arg("array"), "The layout's bytes, relative to the first element of `array`.")
      .def("unpack", unpack, nb::arg("packed"), nb::arg("array"),
           "Scatters `size` bytes to the layout's bytes of `array`.")
      .def(nb::self == nb::self)
      .def("__repr__", [](const Layout& l) { return fmt::format("<tasuki.Layout {}>", l.describe()); });
  m.def(
      "blocks_of", [](const Layout& block, int count) { return blocks_of(block, count); }, nb::arg("block"),
      nb::arg("count"),
      R"(Layouts of the blocks of a collective, as MPI counts them, all relative to the array's first element. Local.

block, count: `count` blocks, of which each begins an extent after the one before it (MPI_Allgather).
element, counts, displacements: block i is `counts[i]` elements from `displacements[i]` extents on (MPI_Allgatherv).
elements, counts, displacements: `counts[i]` of `elements[i]` from `displacements[i]` bytes on (MPI_Alltoallw).)");
  m.def(
      "blocks_of",
      [](const Layout& element, const Numbers& counts, const Numbers& displacements) {
        return blocks_of(element, counts, displacements);
      },
      nb::arg("element"), nb::arg("counts"), nb::arg("displacements"));
  m.def(
      "blocks_of",
      [](const std::vector<Layout>& elements, const Numbers& counts, const Numbers& displacements) {
        return blocks_of(elements, counts, displacements);
      },
      nb::arg("elements"), nb::arg("counts"), nb::arg("displacements"));
  m.attr("Layout").attr("__hash__") = nb::none();  // as Python has it for what is equal by value and has no cheap hash
}

}  // namespace tasuki::python
