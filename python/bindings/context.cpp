// Context and Grid: the ranks and how an array is cut over them.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "arguments.hpp"
#include "grid.hpp"
#include "module.hpp"
#include "owner.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

bool mpi_running() {
  int started = 0;
  int ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) throw Error("MPI_Get_library_version failed");
  return text;  // some count the zero at the end
}

// A handle of another MPI library means nothing here, and calling MPI with it would crash.
void check_same_library(nb::handle comm) {
  const auto module = nb::cast<std::string>(nb::str(comm.type().attr("__module__")));
  if (!module.starts_with("mpi4py")) return;
  auto theirs = nb::cast<std::string>(nb::module_::import_("mpi4py.MPI").attr("Get_library_version")());
  theirs = theirs.substr(0, theirs.find('\0'));
  const std::string ours = library_version();
  if (theirs.substr(0, theirs.find('\n')) != ours.substr(0, ours.find('\n')))
    throw Error(
        fmt::format("Context: argument 'comm' belongs to mpi4py on {}, but Tasuki was built with {}; import "
                    "tasuki before mpi4py, or set MPI4PY_LIBMPI to Tasuki's MPI library",
                    theirs.substr(0, theirs.find('\n')), ours.substr(0, ours.find('\n'))));
}

MPI_Comm communicator(nb::handle comm) {
  if (!mpi_running())
    throw Error(
        "Context: argument 'comm' was given, but MPI is not running (not started yet, or finalised); import "
        "mpi4py.MPI first, or leave 'comm' out and let Tasuki start MPI");
  std::int64_t number = 0;
  if (nb::hasattr(comm, "py2f")) {
    check_same_library(comm);
    number = nb::cast<std::int64_t>(comm.attr("py2f")());
  } else if (!as_integer(comm, number)) {
    throw Error(
        fmt::format("Context: argument 'comm' is {}; it must be a communicator of mpi4py, or its Fortran handle "
                    "(an int: comm.py2f(), MPI_Comm_c2f)",
                    shown(comm)));
  }
  const auto handle = static_cast<MPI_Fint>(number);
  const MPI_Comm found = handle == number ? MPI_Comm_f2c(handle) : MPI_COMM_NULL;
  // Whether it is a communicator at all is asked where a wrong answer returns an error instead of ending the program.
  bool valid = found != MPI_COMM_NULL && found != MPI_Comm();
  if (valid) {
    const MPI_Comm places[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    MPI_Errhandler before[2];
    for (int i = 0; i < 2; ++i) {
      PMPI_Comm_get_errhandler(places[i], &before[i]);
      PMPI_Comm_set_errhandler(places[i], MPI_ERRORS_RETURN);
    }
    int size = 0;
    valid = PMPI_Comm_size(found, &size) == MPI_SUCCESS;
    for (int i = 0; i < 2; ++i) {
      PMPI_Comm_set_errhandler(places[i], before[i]);
      PMPI_Errhandler_free(&before[i]);
    }
  }
  if (!valid)
    throw Error(fmt::format("Context: argument 'comm' is {}, which is no communicator of this MPI; give comm.py2f()",
                            shown(comm)));
  return found;
}

template <class F>
nb::tuple per_dimension(const Grid& grid, F&& f) {
  nb::list result;
  for (int d = 0; d < grid.ndims(); ++d) result.append(f(d));
  return nb::tuple(result);
}

ContextHandle make_context(nb::handle comm) {
  if (!comm.is_none()) return {Owner::make(std::make_unique<Context>(communicator(comm)))};
  int argc = 0;
  char** argv = nullptr;
  return {Owner::make(std::make_unique<Context>(argc, argv))};
}

GridHandle make_grid(const ContextHandle& context, const std::vector<std::int64_t>& shape,
                     const std::optional<std::vector<int>>& split,
                     const std::variant<Truth, std::vector<Truth>>& periodic,
                     const std::optional<std::vector<std::optional<std::vector<std::int64_t>>>>& cuts, Truth reorder,
                     const Mapping& mapping) {
  GridOptions options;
  if (split) options.split = *split;
  if (const Truth* all = std::get_if<Truth>(&periodic)) {
    options.periodic.assign(shape.size(), *all);
  } else {
    const auto& each = std::get<1>(periodic);
    options.periodic.assign(each.begin(), each.end());
  }
  if (cuts)
    for (const auto& list : *cuts) options.cuts.push_back(list.value_or(std::vector<std::int64_t>{}));
  options.reorder = reorder;
  map_boxes(options, mapping);
  const std::shared_ptr<Owner>& owner = context.owner;
  const Grid grid(owner->context(), shape, options);
  std::string text = fmt::format(".Grid {} split {}", shown(per_dimension(grid, [&](int d) { return grid.extent(d); })),
                                 shown(per_dimension(grid, [&](int d) { return grid.split(d); })));
  return {std::make_shared<Held<Grid>>(owner, grid), std::move(text)};
}

void bind_context(nb::module_& m) {
  nb::class_<ContextHandle>(m, "Context", R"(A group of ranks and what Tasuki knows of it: hosts, islands, paths.

Collective over the communicator. Making grids, fields and operations is collective over the context, in the same order
on every rank; starting, testing and waiting are local. One thread at a time may use the objects of one context.

A context lives until `close()` or the end of the program, which waits for all ranks.)")
      .def(
          "__init__", [](ContextHandle* self, nb::handle comm) { new (self) ContextHandle(make_context(comm)); },
          nb::arg("comm") = nb::none(), nb::sig("def __init__(self, comm: object | None = None) -> None"),
          R"(comm: a communicator of mpi4py, or its Fortran handle (int); it is duplicated.
None: MPI_COMM_WORLD; MPI is started if nobody has, and then ended with the program.
Raises tasuki.Error if `comm` is not a communicator of the MPI that Tasuki was built with.)")
      .def_prop_ro(
          "rank", [](const ContextHandle& c) { return c.owner->context().rank(); }, "This process's rank.")
      .def_prop_ro(
          "size", [](const ContextHandle& c) { return c.owner->context().size(); }, "Number of ranks.")
      .def_prop_rw(
          "deadline", [](const ContextHandle& c) { return c.owner->context().deadline(); },
          [](const ContextHandle& c, double seconds) { c.owner->context().set_deadline(seconds); },
          "Seconds that a wait may take before it fails; 30 unless TASUKI_DEADLINE or this says otherwise.")
      .def_prop_ro(
          "handle", [](const ContextHandle& c) { return MPI_Comm_c2f(c.owner->context().comm()); },
          "Fortran handle of Tasuki's communicator, for collectives of your own: mpi4py.MPI.Comm.f2py(handle).")
      .def(
          "barrier", [](const ContextHandle& c) { c.owner->context().barrier(); },
          "Waits for all ranks. Collective. Raises like a wait if a rank has died.")
      .def(
          "subset",
          [](const ContextHandle& c, const std::vector<int>& ranks) {
            return ContextHandle{Owner::make(std::make_unique<Context>(c.owner->context().subset(ranks)))};
          },
          nb::arg("ranks"), nb::sig("def subset(self, ranks: Sequence[SupportsIndex]) -> Context"),
          R"(A context of these ranks alone, numbered in this order; what is done with it involves them and nobody else.

It has this context's settings, deadline, islands, prices and GPU. Arrays and fields of this context are the user's
memory there. Collective over the ranks named, with the same list; others need not call it. It is closed like any
context, or ends with the program.
Raises tasuki.Error on this rank at once if the list is empty, names a rank twice, one that does not exist, or not this
one; on all who are named if the lists differ. If they name different ranks, or one does not come before the deadline,
this context cannot be used again.)")
      .def(
          "describe", [](const ContextHandle& c) { return c.owner->context().describe(); },
          "Ranks, hosts and islands, a line each. Local.")
      .def(
          "close", [](const ContextHandle& c) { c.owner->close(); },
          R"(Frees all operations and fields of the context, and the context. Local: it waits for no other rank, and ranks may
close their contexts in any order. What the ranks share stays until all have closed the context. If Tasuki has started
MPI, closing the last context of the program ends it, and waits for the other ranks to do the same.

Raises, and does nothing, while an operation is active or an array still looks at a field. A second call does nothing.)")
      .def("__repr__", [](const ContextHandle& c) { return c.owner->text(); });
}

void bind_grid(nb::module_& m) {
  nb::class_<GridHandle>(m, "Grid", R"(A global array of cells cut into boxes, one a rank; 1 to 7 dimensions.

Dimension 0 is the slowest in memory, the last is contiguous. Immutable.)")
      .def(
          "__init__",
          [](GridHandle* self, const ContextHandle& context, const std::vector<std::int64_t>& shape,
             const std::optional<std::vector<int>>& split, const std::variant<Truth, std::vector<Truth>>& periodic,
             const std::optional<std::vector<std::optional<std::vector<std::int64_t>>>>& cuts, Truth reorder,
             const Mapping& mapping) {
            new (self) GridHandle(with_names({{"extents", "shape"}, {"given", "mapping"}}, [&] {
              return make_grid(context, shape, split, periodic, cuts, reorder, mapping);
            }));
          },
          nb::arg("context"), nb::arg("shape"), nb::kw_only(), nb::arg("split") = nb::none(),
          nb::arg("periodic") = false, nb::arg("cuts") = nb::none(), nb::arg("reorder") = false,
          nb::arg("mapping") = nb::none(),
          nb::sig("def __init__(self, context: Context, shape: Sequence[SupportsIndex], *, "
                  "split: Sequence[SupportsIndex] | None = None, "
                  "periodic: Truth | Sequence[Truth] | NDArray[bool_] = False, "
                  "cuts: Sequence[Sequence[SupportsIndex] | None] | None = None, reorder: Truth = False, "
                  "mapping: str | Sequence[SupportsIndex] | None = None) -> None"),
          R"(Collective, with the same arguments on all ranks.

shape: global cells in each dimension.
split: ranks in each dimension, their product the context's size; 0: chosen; 1: not split. None: all chosen.
periodic: for all dimensions, or one a dimension.
cuts: explicit boundaries: for a dimension, split + 1 ascending indices from 0 to the extent, or None.
reorder: as mapping 'hops'.
mapping: which rank has which box: 'row' (rank order, the last dimension fastest), 'column' (the first fastest),
'blocks' (each island has a block of boxes), 'hops' (the busiest link of the machine's networks carries the fewest
bytes), or a list with the rank of each box. None: 'row'.
Raises tasuki.Error on all ranks if an argument is bad on one or differs between them.)")
      .def_prop_ro("context", [](const GridHandle& g) { return ContextHandle{g.held->shared_owner()}; })
      .def_prop_ro("ndim", [](const GridHandle& g) { return g.grid().ndims(); })
      .def_prop_ro(
          "shape",
          [](const GridHandle& g) { return per_dimension(g.grid(), [&](int d) { return g.grid().extent(d); }); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Global cells in each dimension.")
      .def_prop_ro(
          "split",
          [](const GridHandle& g) { return per_dimension(g.grid(), [&](int d) { return g.grid().split(d); }); },
          nb::sig("def split(self) -> tuple[int, ...]"), "Ranks in each dimension.")
      .def_prop_ro(
          "periodic",
          [](const GridHandle& g) { return per_dimension(g.grid(), [&](int d) { return g.grid().periodic(d); }); },
          nb::sig("def periodic(self) -> tuple[bool, ...]"))
      .def_prop_ro(
          "box", [](const GridHandle& g) { return slices(g.grid().owned()); },
          nb::sig("def box(self) -> tuple[slice, ...]"),
          "This rank's cells in global indices, a slice a dimension: `global_array[grid.box]`.")
      .def(
          "box_of", [](const GridHandle& g, int rank) { return slices(g.grid().owned(rank)); }, nb::arg("rank"),
          nb::sig("def box_of(self, rank: SupportsIndex) -> tuple[slice, ...]"),
          "The cells of `rank` in global indices.")
      .def(
          "coords", [](const GridHandle& g, int rank) { return tuple_of(g.grid().coords(rank), g.grid().ndims()); },
          nb::arg("rank"), nb::sig("def coords(self, rank: SupportsIndex) -> tuple[int, ...]"),
          "Where `rank` is in the grid of ranks.")
      .def(
          "rank_at",
          [](const GridHandle& g, const std::vector<int>& coords) {
            if (coords.size() != static_cast<std::size_t>(g.grid().ndims()))
              throw Error(fmt::format("Grid.rank_at: argument 'coords' has {} entries; the grid has {} dimensions",
                                      coords.size(), g.grid().ndims()));
            std::array<int, kMaxDims> all{};
            std::copy(coords.begin(), coords.end(), all.begin());
            return g.grid().rank_at(all);
          },
          nb::arg("coords"), nb::sig("def rank_at(self, coords: Sequence[SupportsIndex]) -> int"),
          "The rank at these coordinates of the grid of ranks.")
      .def("__repr__", [](const GridHandle& g) { return g.held->shown_as(g.text); });
}

}  // namespace

void bind_context_and_grid(nb::module_& m) {
  bind_context(m);
  bind_grid(m);
}

}  // namespace tasuki::python
