// Neighbour collectives: made from arrays, and from a grid or lists of ranks.
#include "tasuki/neighbours.hpp"

#include <nanobind/stl/string.h>

#include "collective_arguments.hpp"
#include "grid.hpp"
#include "module.hpp"

namespace tasuki::python {
namespace {

using PyNeighbourAllgather = PyCollective<10>;
using PyNeighbourAlltoall = PyCollective<11>;

/// A Grid, or a pair (to, from) of lists of ranks.
Neighbours neighbours_from(nb::handle value) {
  if (nb::isinstance<GridHandle>(value)) return Neighbours(inside<GridHandle>(value).grid());
  const bool pair = nb::isinstance<nb::tuple>(value) && nb::len(value) == 2;
  const auto ranks = [&](std::size_t i) {
    std::vector<nb::object> entries;
    std::vector<int> list;
    const bool sequence = pair && nb::try_cast(nb::object(value[i]), entries);
    for (const nb::object& entry : entries)
      if (int rank = 0; as_integer(entry, rank)) list.push_back(rank);
    if (!sequence || list.size() != entries.size())
      throw Error(fmt::format("argument 'neighbours' is {}; it must be a Grid, or (ranks sent to, ranks heard from)",
                              shown(value)));
    return list;
  };
  std::vector<int> to = ranks(0);
  return {std::move(to), ranks(1)};
}

template <class Operation, class Py, bool same_block>
void make_neighbours(Py* self, const ContextHandle& context, const char* name, nb::handle whom, nb::handle source,
                     nb::handle target, nb::handle send_counts, nb::handle receive_counts, const std::string& path,
                     const std::string& engine, int gpu_blocks) {
  Neighbours neighbours{{}, {}};
  create(
      self, context, name,
      [&](Reading& reading, Asked& asked) {
        neighbours = neighbours_from(whom);
        asked.source =
            reading.side_of(source, "source", false, same_block ? Blocks::one : Blocks::many, neighbours.to.size());
        asked.target = reading.side_of(target, "target", true, Blocks::many, neighbours.from.size());
        if (!same_block) reading.counts_for(send_counts, "send_counts", asked.source);
        reading.counts_for(receive_counts, "receive_counts", asked.target);
        reading.need_array(asked.source);
        reading.need_array(asked.target);
        const auto equal = [](const Side& side, std::size_t blocks) {
          const auto count = static_cast<std::int64_t>(blocks);
          if (!side.counted()) return std::vector<std::int64_t>(blocks, 0);
          if (count == 0 ? side.count() > 0 : side.count() % count != 0)
            throw Error(fmt::format("argument '{}' has {} elements, which are no {} equal blocks; give counts",
                                    side.argument, side.count(), count));
          return std::vector<std::int64_t>(blocks, count == 0 ? 0 : side.count() / count);
        };
        const auto given_or_equal = [&](nb::handle counts, const char* argument, const Side& side, std::size_t blocks) {
          if (counts.is_none()) return equal(side, blocks);
          auto list = reading.counts(counts, argument, blocks);
          Reading::need_count(side, std::accumulate(list->begin(), list->end(), std::int64_t{0}));
          return *list;
        };
        asked.count = asked.source.count();
        asked.counts = same_block ? std::vector<std::int64_t>()
                                  : given_or_equal(send_counts, "send_counts", asked.source, neighbours.to.size());
        asked.receive_counts = given_or_equal(receive_counts, "receive_counts", asked.target, neighbours.from.size());
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> tasuki::Operation {
        OperationOptions options;
        options.path = path;
        options.engine = engine;
        options.blocks = gpu_blocks;
        if (a.with_layouts) {
          const auto received = a.target.blocks(neighbours.from.size(), a.receive_elements);
          if constexpr (same_block)
            return Operation(ranks, neighbours, a.in(), a.source.whole(), a.out(), received, options);
          else
            return Operation(ranks, neighbours, a.in(), a.source.blocks(neighbours.to.size(), a.element_counts),
                             a.out(), received, options);
        }
        if constexpr (same_block)
          return Operation(ranks, neighbours, a.in(), a.out(), a.count, a.receive_counts, a.type, options);
        else
          return Operation(ranks, neighbours, a.in(), a.out(), *a.counts, a.receive_counts, a.type, options);
      });
}

}  // namespace

void bind_neighbours(nb::module_& m) {
  nb::class_<PyNeighbourAllgather, PyOperation>(m, "NeighbourAllgather",
                                                "This rank's array to its neighbours, and theirs to it.")
      .def(
          "__init__",
          [](PyNeighbourAllgather* self, const ContextHandle& context, nb::handle whom, nb::handle source,
             nb::handle target, nb::handle received, const std::string& path, const std::string& engine,
             int gpu_blocks) {
            make_neighbours<NeighbourAllgather, PyNeighbourAllgather, true>(self, context, "NeighbourAllgather", whom,
                                                                            source, target, nb::none(), received, path,
                                                                            engine, gpu_blocks);
          },
          nb::arg("context"), nb::arg("neighbours"), nb::arg("source"), nb::arg("target"), nb::kw_only(),
          nb::arg("receive_counts") = nb::none(), nb::arg("path") = "auto", nb::arg("engine") = "auto",
          nb::arg("blocks") = 0,
          nb::sig("def __init__(self, context: Context, "
                  "neighbours: Grid | tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]], source: Any, "
                  "target: Any, *, receive_counts: Sequence[SupportsIndex] | None = None, path: str = 'auto', "
                  "engine: str = 'auto', blocks: SupportsIndex = 0) -> None"),
          R"(Collective. `target` gets a block of each neighbour, one after the other; elements of any type. Arrays may have any strides;
which bytes are meant (array, Layout) says, of the target (array, [Layout, ...]), one a neighbour, without counts.

neighbours: a Grid, for the two beside this rank in each dimension, the lower one first, and a block left alone where there is
none; or a pair: the ranks that this one sends to, and those that it hears from. For every time that rank a names b in the
first, b names a in the second.
receive_counts: elements of each block; None: all are equal.
blocks: as for `Halo`.)");
  nb::class_<PyNeighbourAlltoall, PyOperation>(m, "NeighbourAlltoall", "A block to each neighbour, and one from each.")
      .def(
          "__init__",
          [](PyNeighbourAlltoall* self, const ContextHandle& context, nb::handle whom, nb::handle source,
             nb::handle target, nb::handle sent, nb::handle received, const std::string& path,
             const std::string& engine, int gpu_blocks) {
            make_neighbours<NeighbourAlltoall, PyNeighbourAlltoall, false>(
                self, context, "NeighbourAlltoall", whom, source, target, sent, received, path, engine, gpu_blocks);
          },
          nb::arg("context"), nb::arg("neighbours"), nb::arg("source"), nb::arg("target"), nb::kw_only(),
          nb::arg("send_counts") = nb::none(), nb::arg("receive_counts") = nb::none(), nb::arg("path") = "auto",
          nb::arg("engine") = "auto", nb::arg("blocks") = 0,
          nb::sig("def __init__(self, context: Context, "
                  "neighbours: Grid | tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]], source: Any, "
                  "target: Any, *, send_counts: Sequence[SupportsIndex] | None = None, "
                  "receive_counts: Sequence[SupportsIndex] | None = None, path: str = 'auto', engine: str = 'auto', "
                  "blocks: SupportsIndex = 0) -> None"),
          R"(Collective. As `NeighbourAllgather`; `source` holds a block for each neighbour, one after the other, or is a
pair (array, [Layout, ...]).

send_counts, receive_counts: elements of each block; None: all are equal.)");
}

}  // namespace tasuki::python
