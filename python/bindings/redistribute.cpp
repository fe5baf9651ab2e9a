// Redistributions from Python: how arrays lie on ranks, and arrays with sections of them; live and off line.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <utility>

#include "arguments.hpp"
#include "making.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"
#include "tasuki/redistribute.hpp"

namespace tasuki::python {
namespace {

using Numbers = std::vector<std::int64_t>;

/// One entry of `split`: ranks, cuts, or a pair that begins with a word.
DimDistribution dim_from(nb::handle value, std::size_t d) {
  if (value.is_none()) return DimDistribution::whole();
  if (int ranks = 0; as_integer(value, ranks)) return DimDistribution::block(ranks);
  std::vector<nb::object> parts;
  Numbers cuts;
  if (!nb::isinstance<nb::str>(value) && nb::try_cast(value, parts) && !parts.empty()) {
    std::string word;
    int ranks = 0;
    std::int64_t width = 1;
    if (nb::try_cast(parts[0], word)) {
      const bool counted = parts.size() >= 2 && as_integer(parts[1], ranks);
      if (counted && word == "block" && parts.size() == 2) return DimDistribution::block(ranks);
      if (counted && word == "replicated" && parts.size() == 2) return DimDistribution::replicated(ranks);
      if (counted && word == "cyclic" && (parts.size() == 2 || (parts.size() == 3 && as_integer(parts[2], width))))
        return DimDistribution::cyclic(ranks, width);
    } else if (nb::try_cast(value, cuts)) {
      return DimDistribution::between(cuts);
    }
  }
  throw Error(
      fmt::format("argument 'split' has the entry {} for dimension {}; it must be a number of ranks, a list of cuts, "
                  "('cyclic', ranks, width), ('replicated', ranks), or None",
                  shown(value), d));
}

ArrayDistribution distribution_from(nb::handle shape, nb::handle split, nb::handle ranks) {
  ArrayDistribution array;
  if (std::int64_t extent = 0; as_integer(shape, extent)) array.extents = {extent};
  std::vector<nb::object> entries;
  if (array.extents.empty() && !nb::try_cast(shape, array.extents))
    throw Error(fmt::format("argument 'shape' is {}; it must be integers, one a dimension", shown(shape)));
  if (!nb::try_cast(split, entries))
    throw Error(fmt::format("argument 'split' is {}; it must have an entry for each dimension", shown(split)));
  for (const nb::object& entry : entries) array.dims.push_back(dim_from(entry, array.dims.size()));
  if (!ranks.is_none() && !nb::try_cast(ranks, array.ranks))
    throw Error(fmt::format("argument 'ranks' is {}; it must be a list of ranks", shown(ranks)));
  if (const std::string wrong = array.complaint(std::numeric_limits<int>::max()); !wrong.empty())
    throw Error("ArrayDistribution: " + wrong);
  return array;
}

nb::tuple indices_of(const ArrayDistribution& array, int rank) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::list all;
  for (int d = 0; d < std::ssize(array.extents); ++d)
    all.append(numpy.attr("asarray")(nb::cast(array.indices(rank, d)), "int64"));
  return nb::tuple(all);
}

/// The part of a dimension that a slice means, as of any sequence.
Section section_from(nb::handle slice, std::int64_t extent, const char* argument) {
  if (PySlice_Check(slice.ptr()) == 0)
    throw Error(
        fmt::format("argument '{}' has {} in its section; it must have a slice for each dimension, as numpy.s_ makes",
                    argument, shown(slice)));
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
  return {count > 0 ? start : 0, count, step};
}

/// (arrays, distribution) or (arrays, distribution, section).
struct SideGiven {
  nb::object arrays;
  ArraySide side;
};

SideGiven side_from(nb::handle value, const char* argument) {
  std::vector<nb::object> parts;
  if (!nb::try_cast(value, parts) || parts.size() < 2 || parts.size() > 3 ||
      !nb::isinstance<ArrayDistribution>(parts[1]))
    throw Error(
        fmt::format("argument '{}' is {}; it must be (array, ArrayDistribution) or (array, ArrayDistribution, section)",
                    argument, shown(value)));
  SideGiven given{parts[0], {inside<ArrayDistribution>(parts[1])}};
  if (parts.size() < 3 || parts[2].is_none()) return given;
  std::vector<nb::object> slices;
  const Numbers& extents = given.side.array.extents;
  if (PySlice_Check(parts[2].ptr()) != 0) slices = {parts[2]};
  if ((slices.empty() && !nb::try_cast(parts[2], slices)) || slices.size() != extents.size())
    throw Error(fmt::format("argument '{}' has the section {}; it must have a slice for each of the {} dimensions",
                            argument, shown(parts[2]), extents.size()));
  for (std::size_t d = 0; d < extents.size(); ++d)
    given.side.sections.push_back(section_from(slices[d], extents[d], argument));
  return given;
}

std::vector<std::pair<std::string, nb::object>> named_arrays(nb::handle arrays) {
  std::vector<std::pair<std::string, nb::object>> all;
  if (nb::isinstance<nb::dict>(arrays)) {
    for (const auto& [name, array] : nb::cast<nb::dict>(arrays))
      all.emplace_back(nb::cast<std::string>(nb::str(name)), nb::borrow(array));
  } else if (nb::isinstance<nb::list>(arrays)) {
    for (const nb::handle array : nb::borrow<nb::list>(arrays))
      all.emplace_back(fmt::format("array{}", all.size()), nb::borrow(array));
  } else {
    all.emplace_back("array", nb::borrow(arrays));
  }
  return all;
}

/// What is known of the cells of one array on one side.
struct CellsGiven {
  void* base = nullptr;
  MovedArray::Local local;
  std::string type;  ///< of the elements, and how many a cell has; empty: not given
};

CellsGiven cells_from(nb::handle given, const ArrayDistribution& array, const Context& context, const char* argument,
                      bool writable, std::vector<Array>& keep) {
  CellsGiven cells;
  if (given.is_none()) {
    if (array.place_of(context.rank()) >= 0)
      throw Error(
          fmt::format("argument '{}' has no array on rank {}, which has a part of it", argument, context.rank()));
    return cells;
  }
  const Array seen = array_from(given, argument, writable, true);
  check_gpu(seen, context, argument);
  const Numbers local = array.local(context.rank());
  const std::size_t dims = local.size();
  if (seen.shape.size() < dims || !std::equal(local.begin(), local.end(), seen.shape.begin()))
    throw Error(fmt::format("argument '{}' has shape ({}), but the local array of rank {} is ({})", argument,
                            fmt::join(seen.shape, ", "), context.rank(), fmt::join(local, ", ")));
  Layout cell = Layout::bytes(seen.element_bytes);
  for (std::size_t d = seen.shape.size(); d-- > dims;) cell = Layout::hvector(seen.shape[d], 1, seen.strides[d], cell);
  const auto first = seen.shape.begin() + static_cast<std::ptrdiff_t>(dims);
  cells.type = fmt::format("{} of shape ({})", nb::cast<std::string>(nb::str(seen.dtype)),
                           fmt::join(first, seen.shape.end(), ", "));
  cells.base = seen.data;
  cells.local.cell = cell;
  cells.local.strides.assign(seen.strides.begin(), seen.strides.begin() + static_cast<std::ptrdiff_t>(dims));
  keep.push_back(seen);
  return cells;
}

std::vector<int> axes_from(nb::handle axes, std::size_t dims) {
  std::vector<int> list;
  if (axes.is_none()) return list;
  if (!nb::try_cast(axes, list))
    throw Error(
        fmt::format("argument 'axes' is {}; it must be the dimensions of the source in the order of the "
                    "target's",
                    shown(axes)));
  for (int& axis : list)
    if (axis < 0 && axis >= -static_cast<int>(dims)) axis += static_cast<int>(dims);
  return list;
}

}  // namespace

NewOperation made_redistribute(const ContextHandle& context, nb::handle source, nb::handle target, nb::handle axes,
                               const RedistributeOptions& options) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  OperationCore& core = made.core;
  ArraySide from, to;
  std::vector<RedistributeArray> arrays;
  std::vector<int> order;
  owner->agree("Redistribute", [&](Named& agreement) {
    const SideGiven before = side_from(source, "source");
    const SideGiven after = side_from(target, "target");
    from = before.side;
    to = after.side;
    order = axes_from(axes, from.array.extents.size());
    const auto sources = named_arrays(before.arrays);
    const auto targets = named_arrays(after.arrays);
    if (sources.size() != targets.size())
      throw Error(fmt::format("argument 'source' has {} arrays, but 'target' has {}; they must be equal",
                              sources.size(), targets.size()));
    for (std::size_t a = 0; a < sources.size(); ++a) {
      const std::string& name = sources[a].first;
      if (name != targets[a].first)
        throw Error(fmt::format("argument 'source' has the array '{}', but 'target' has '{}' in its place", name,
                                targets[a].first));
      CellsGiven given = cells_from(sources[a].second, from.array, owner->context(), "source", false, core.arrays);
      CellsGiven taken = cells_from(targets[a].second, to.array, owner->context(), "target", true, core.arrays);
      if (given.type.empty() && taken.type.empty())
        throw Error(fmt::format(
            "array {}: rank {} has no part of it and gives None twice; give an empty array, which has the type", name,
            owner->context().rank()));
      // Who has no part has an array of nothing, of the same type.
      const auto contiguous = [](const CellsGiven& like) {
        CellsGiven cells;
        cells.local.cell = Layout::bytes(like.local.cell.size());
        cells.type = like.type;
        return cells;
      };
      if (given.type.empty()) given = contiguous(taken);
      if (taken.type.empty()) taken = contiguous(given);
      if (given.type != taken.type)
        throw Error(
            fmt::format("array {}: the cells of the source are {}, but those of the target {}; they must be "
                        "equal",
                        name, given.type, taken.type));
      agreement.same(fmt::format("cells of array {}", name), given.type);
      arrays.emplace_back(MovedArray{name, given.local, taken.local}, given.base, taken.base);
    }
  });
  core.operation = Redistribute(owner->context(), from, to, arrays, order, options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  return made;
}

void bind_redistribute(nb::module_& m) {
  nb::class_<ArrayDistribution>(m, "ArrayDistribution",
                                "How a global array lies on ranks: for Redistribute. A value; making it is local.")
      .def(
          "__init__",
          [](ArrayDistribution* self, nb::handle shape, nb::handle split, nb::handle ranks) {
            new (self) ArrayDistribution(distribution_from(shape, split, ranks));
          },
          nb::arg("shape"), nb::arg("split"), nb::arg("ranks") = nb::none(),
          nb::sig("def __init__(self, shape: SupportsIndex | Sequence[SupportsIndex], split: Sequence[Any], ranks: "
                  "Sequence[SupportsIndex] | None = None) -> None"),
          R"(shape: of the global array, 1 to 7 dimensions.

split: of each dimension the ranks in the process grid, and how indices lie on them. One of

* 4: blocks, the first ones an index longer where the extent is no multiple, as Grid cuts
* [0, 10, 16]: blocks between cuts
* ('cyclic', 4, 2): blocks of 2 indices dealt out to 4 ranks in turn; ('cyclic', 4): of 1
* ('replicated', 2): each of 2 ranks has all indices
* None, or 1: not split

ranks: those of the process grid, the last dimension fastest; other ranks have nothing. None: 0, 1, ...)")
      .def_prop_ro(
          "shape",
          [](const ArrayDistribution& array) {
            return tuple_of(array.extents, static_cast<int>(array.extents.size()));
          },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "ranks",
          [](const ArrayDistribution& array) {
            nb::list ranks;
            for (int place = 0; place < array.grid_size(); ++place) ranks.append(array.rank_of(place));
            return nb::tuple(ranks);
          },
          nb::sig("def ranks(self) -> tuple[int, ...]"))
      .def(
          "local_shape",
          [](const ArrayDistribution& array, int rank) {
            const Numbers local = array.local(rank);
            return tuple_of(local, static_cast<int>(local.size()));
          },
          nb::arg("rank"), nb::sig("def local_shape(self, rank: SupportsIndex) -> tuple[int, ...]"),
          "The shape of a rank's local array; all 0 for a rank that has nothing.")
      .def("indices", indices_of, nb::arg("rank"),
           nb::sig("def indices(self, rank: SupportsIndex) -> tuple[NDArray[Any], ...]"),
           "The global indices that a rank has, an array for each dimension: its local array is "
           "`whole[numpy.ix_(*distribution.indices(rank))]`.")
      .def(
          "__eq__", [](const ArrayDistribution& a, const ArrayDistribution& b) { return a == b; },
          nb::sig("def __eq__(self, other: object, /) -> bool"), nb::is_operator())
      .def("__repr__", [](const ArrayDistribution& array) {
        return fmt::format("<tasuki.ArrayDistribution {}>", array.describe());
      });
  m.attr("ArrayDistribution").attr("__hash__") = nb::none();  // equal by value, without a cheap hash
}

}  // namespace tasuki::python
