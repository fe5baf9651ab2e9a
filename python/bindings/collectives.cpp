// The collectives but Broadcast: made from arrays, whose sizes say how much is moved.
#include "tasuki/collectives.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "collective_arguments.hpp"
#include "module.hpp"

namespace tasuki::python {
namespace {

/// Keyword arguments that all have.
struct Common {
  std::string algorithm;
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;
  std::string path;
  std::string engine;
  int blocks = 0;
  CollectiveOptions options(bool ordered = false) const {
    CollectiveOptions to;
    to.ordered = ordered;
    to.algorithm = algorithm;
    to.trees = trees;
    to.arity = arity;
    to.chunk = chunk;
    to.path = path;
    to.engine = engine;
    to.blocks = blocks;
    return to;
  }
};

// A vector that is combined on every rank.
template <class Operation, class Py>
void make_vector(Py* self, const ContextHandle& context, const char* name, nb::handle source, nb::handle target,
                 nb::handle op, bool ordered, const Common& common) {
  create(
      self, context, name,
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false, Blocks::one);
        asked.target = reading.side(target, "target", true, Blocks::one);
        reading.need(asked.source);
        reading.need_array(asked.target);
        asked.count = asked.target.count();
        if (asked.target.counted()) Reading::need_count(asked.source, asked.count);
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op, name);
      },
      [&](const Context& ranks, const Asked& a) -> tasuki::Operation {
        if (a.with_layouts)
          return Operation(ranks, a.in(), a.source.whole(), a.out(), a.target.whole(), a.type, a.op,
                           common.options(ordered));
        return Operation(ranks, a.in(), a.out(), a.count, a.type, a.op, common.options(ordered));
      });
}

using PyReduce = PyCollective<0>;
using PyAllreduce = PyCollective<1>;
using PyScan = PyCollective<2>;
using PyExscan = PyCollective<3>;
using PyReduceScatter = PyCollective<4>;
using PyAllgather = PyCollective<5>;
using PyGather = PyCollective<6>;
using PyScatter = PyCollective<7>;
using PyAlltoall = PyCollective<8>;
using PyBarrier = PyCollective<9>;

void make_reduce(PyReduce* self, const ContextHandle& context, nb::handle source, nb::handle target, int root,
                 nb::handle op, Truth ordered, const Common& common) {
  create(
      self, context, "Reduce",
      [&](Reading& reading, Asked& asked) {
        const bool is_root = context.owner->context().rank() == root;
        asked.source = reading.side(source, "source", false, Blocks::one);
        if (is_root) asked.target = reading.side(target, "target", true, Blocks::one);
        reading.need(asked.source);
        reading.root_only(asked.source, root);
        if (is_root) reading.need_array(asked.target);
        asked.count = asked.source.here ? asked.source.count() : asked.target.count();
        if (asked.source.counted()) Reading::need_count(asked.target, asked.count);
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op, "Reduce");
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts)
          return Reduce(ranks, root, a.in(), a.source.whole(), a.out(), a.target.whole(), a.type, a.op,
                        common.options(ordered));
        return Reduce(ranks, root, a.in(), a.out(), a.count, a.type, a.op, common.options(ordered));
      });
}

void make_reduce_scatter(PyReduceScatter* self, const ContextHandle& context, nb::handle source, nb::handle target,
                         nb::handle op, Truth ordered, nb::handle counts, const Common& common) {
  create(
      self, context, "ReduceScatter",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false, Blocks::many);
        asked.target =
            reading.side(target, "target", true, nb::isinstance<InPlace>(source) ? Blocks::many : Blocks::one);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.need_array(asked.target);
        // In place, the target holds what the source would.
        asked.count = asked.source.in_place ? reading.block(asked.source, asked.target, asked.counts)
                                            : reading.block(asked.target, asked.source, asked.counts);
        reading.counts_for(counts, "counts", asked.source.in_place ? asked.target : asked.source);
        asked.element_counts = asked.counts;
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op, "ReduceScatter");
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts) {
          const Side& all = a.source.in_place ? a.target : a.source;
          const auto blocks = all.blocks(static_cast<std::size_t>(ranks.size()), a.element_counts);
          const Layout result = a.source.in_place ? Layout() : a.target.whole();
          return ReduceScatter(ranks, a.in(), blocks, a.out(), result, a.type, a.op, common.options(ordered));
        }
        if (a.counts) return ReduceScatter(ranks, a.in(), a.out(), *a.counts, a.type, a.op, common.options(ordered));
        return ReduceScatter(ranks, a.in(), a.out(), a.count, a.type, a.op, common.options(ordered));
      });
}

void make_allgather(PyAllgather* self, const ContextHandle& context, nb::handle source, nb::handle target,
                    nb::handle counts, const Common& common) {
  create(
      self, context, "Allgather",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false, Blocks::one);
        asked.target = reading.side(target, "target", true, Blocks::many);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.need_array(asked.target);
        asked.count = reading.block(asked.source, asked.target, asked.counts);
        reading.counts_for(counts, "counts", asked.target);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts)
          return Allgather(ranks, a.in(), a.source.whole(), a.out(),
                           a.target.blocks(static_cast<std::size_t>(ranks.size()), a.element_counts), common.options());
        if (a.counts) return Allgather(ranks, a.in(), a.out(), *a.counts, a.type, common.options());
        return Allgather(ranks, a.in(), a.out(), a.count, a.type, common.options());
      });
}

void make_gather(PyGather* self, const ContextHandle& context, nb::handle source, nb::handle target, int root,
                 nb::handle counts, const Common& common) {
  create(
      self, context, "Gather",
      [&](Reading& reading, Asked& asked) {
        const bool is_root = context.owner->context().rank() == root;
        asked.source = reading.side(source, "source", false, Blocks::one);
        if (is_root) asked.target = reading.side(target, "target", true, Blocks::many);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.root_only(asked.source, root);
        if (is_root) reading.need_array(asked.target);
        asked.count = reading.block(asked.source, asked.target, asked.counts);
        reading.counts_for(counts, "counts", asked.target);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts)
          return Gather(ranks, root, a.in(), a.source.whole(), a.out(),
                        a.target.blocks(static_cast<std::size_t>(ranks.size()), a.element_counts), common.options());
        if (a.counts) return Gather(ranks, root, a.in(), a.out(), *a.counts, a.type, common.options());
        return Gather(ranks, root, a.in(), a.out(), a.count, a.type, common.options());
      });
}

void make_scatter(PyScatter* self, const ContextHandle& context, nb::handle source, nb::handle target, int root,
                  nb::handle counts, const Common& common) {
  create(
      self, context, "Scatter",
      [&](Reading& reading, Asked& asked) {
        const bool is_root = context.owner->context().rank() == root;
        if (is_root) asked.source = reading.side(source, "source", false, Blocks::many);
        asked.target = reading.side(target, "target", true, Blocks::one);
        asked.counts = reading.counts(counts, "counts");
        if (is_root) reading.need_array(asked.source);
        reading.need(asked.target);
        reading.root_only(asked.target, root);
        asked.count = reading.block(asked.target, asked.source, asked.counts);
        reading.counts_for(counts, "counts", asked.source);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts)
          return Scatter(ranks, root, a.in(), a.source.blocks(static_cast<std::size_t>(ranks.size()), a.element_counts),
                         a.out(), a.target.whole(), common.options());
        if (a.counts) return Scatter(ranks, root, a.in(), a.out(), *a.counts, a.type, common.options());
        return Scatter(ranks, root, a.in(), a.out(), a.count, a.type, common.options());
      });
}

void make_alltoall(PyAlltoall* self, const ContextHandle& context, nb::handle source, nb::handle target,
                   nb::handle send_counts, nb::handle receive_counts, const Common& common) {
  create(
      self, context, "Alltoall",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false, Blocks::many);
        asked.target = reading.side(target, "target", true, Blocks::many);
        reading.need(asked.source);
        reading.need_array(asked.target);
        asked.counts = reading.counts(send_counts, "send_counts");
        const auto receive = reading.counts(receive_counts, "receive_counts");
        if (asked.counts.has_value() != receive.has_value())
          throw Error("arguments 'send_counts' and 'receive_counts' come together; give both or neither");
        if (receive) {
          asked.receive_counts = *receive;
          Reading::need_count(asked.source,
                              std::accumulate(asked.counts->begin(), asked.counts->end(), std::int64_t{0}));
          Reading::need_count(asked.target, std::accumulate(receive->begin(), receive->end(), std::int64_t{0}));
        } else {
          asked.count = reading.block(Side{}, asked.target, {});
          if (asked.target.counted())
            Reading::need_count(asked.source, asked.target.count());
          else
            reading.block(Side{}, asked.source, {});
        }
        if (asked.source.layouts || asked.source.in_place)
          reading.counts_for(receive_counts, "receive_counts", asked.target);
        if (asked.target.layouts) reading.counts_for(send_counts, "send_counts", asked.source);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.with_layouts) {
          const auto n = static_cast<std::size_t>(ranks.size());
          const auto received = a.element_counts ? a.receive_elements : std::nullopt;
          return Alltoall(ranks, a.in(), a.source.blocks(n, a.element_counts), a.out(), a.target.blocks(n, received),
                          common.options());
        }
        if (a.counts) return Alltoall(ranks, a.in(), a.out(), *a.counts, a.receive_counts, a.type, common.options());
        return Alltoall(ranks, a.in(), a.out(), a.count, a.type, common.options());
      });
}

constexpr const char* kOptions =
    "algorithm: str = 'auto', trees: SupportsIndex = 0, arity: SupportsIndex = 0, chunk: SupportsIndex = 0, "
    "path: str = 'auto', engine: str = 'auto', blocks: SupportsIndex = 0) -> None";

/// A class whose constructor takes `Arguments` and then the options that all have.
template <class Py, class... Arguments>
struct Constructed {
  using Make = void (*)(Py*, const ContextHandle&, Arguments..., const Common&);

  /// `signature`: the constructor's own part. nanobind keeps the texts' addresses.
  template <class... Names>
  static void bind(nb::module_& m, const char* name, const char* about, const char* signature, const char* doc,
                   Make make, const Names&... names) {
    static std::string whole;
    whole = fmt::format("def __init__(self, context: Context, {}{}", signature, kOptions);
    nb::class_<Py, PyOperation>(m, name, about)
        .def(
            "__init__",
            [make](Py* self, const ContextHandle& context, Arguments... arguments, const std::string& algorithm,
                   int trees, int arity, std::int64_t chunk, const std::string& path, const std::string& engine,
                   int blocks) {
              make(self, context, arguments..., Common{algorithm, trees, arity, chunk, path, engine, blocks});
            },
            nb::arg("context"), names..., nb::arg("algorithm") = "auto", nb::arg("trees") = 0, nb::arg("arity") = 0,
            nb::arg("chunk") = 0, nb::arg("path") = "auto", nb::arg("engine") = "auto", nb::arg("blocks") = 0,
            nb::sig(whole.c_str()), doc);
  }
};

}  // namespace

void bind_collectives(nb::module_& m) {
  nb::class_<InPlace>(m, "_InPlace", "The type of `in_place`.").def("__repr__", [](const InPlace&) {
    return "tasuki.in_place";
  });
  m.attr("in_place") = nb::cast(InPlace{});
  const auto source = nb::arg("source").none();
  const auto target = nb::arg("target").none();
  const auto counts = nb::arg("counts") = nb::none();
  const auto op = nb::arg("op") = "sum";
  const auto ordered = nb::arg("ordered") = false;
  const auto root = nb::arg("root") = 0;
  const nb::kw_only only;

  Constructed<PyAllreduce, nb::handle, nb::handle, nb::handle, Truth>::bind(
      m, "Allreduce", "All ranks' arrays, combined element by element, on every rank.",
      "source: Any, target: Any, *, op: str | Operator | Callable[[Any, Any], Any] = 'sum', ordered: Truth = False, ",
      R"(Collective. `source` and `target` have the same type and number of elements on all ranks. Arrays may have any strides,
which may differ between sides and ranks; elements count in C order. For an array, (array, Layout) says which of its bytes
are meant: on all ranks and sides equally many, whole elements of the array's type. On the host, or all on GPUs.

op: 'sum', 'product', 'min', 'max', 'band', 'bor', 'bxor', 'land', 'lor', 'lxor', 'minloc', 'maxloc' (of pairs); on the host
also an Operator, or a function or ufunc that becomes one.
ordered: combine in rank order, whatever the algorithm.
source: tasuki.in_place, on all ranks, where `target` holds what is combined.
algorithm, trees, arity, chunk: docs/collectives.md. blocks: as for `Halo`.)",
      [](PyAllreduce* self, const ContextHandle& context, nb::handle from, nb::handle to, nb::handle by, Truth in_order,
         const Common& common) { make_vector<Allreduce>(self, context, "Allreduce", from, to, by, in_order, common); },
      source, target, only, op, ordered);
  Constructed<PyReduce, nb::handle, nb::handle, int, nb::handle, Truth>::bind(
      m, "Reduce", "All ranks' arrays, combined element by element, on one rank.",
      "source: Any, target: Any = None, *, root: SupportsIndex = 0, op: str | Operator | Callable[[Any, Any], Any] = "
      "'sum', ordered: Truth = False, ",
      "Collective. `target` is for the root; there `source` may be tasuki.in_place. Else as `Allreduce`.", make_reduce,
      source, nb::arg("target") = nb::none(), only, root, op, ordered);
  Constructed<PyReduceScatter, nb::handle, nb::handle, nb::handle, Truth, nb::handle>::bind(
      m, "ReduceScatter", "A block for every rank on every rank; rank r gets block r of all, combined.",
      "source: Any, target: Any, *, op: str | Operator | Callable[[Any, Any], Any] = 'sum', ordered: Truth = False, "
      "counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `source` holds the blocks one after the other, `target` gets this rank's. Arrays as for `Allreduce`; a layout
for each rank's block of the source: (array, [Layout, ...]).

counts: elements of each rank's block, the same on all ranks; None: all are as long as `target`.
source: tasuki.in_place, on all ranks, where `target` holds all blocks; the result is at its beginning.)",
      make_reduce_scatter, source, target, only, op, ordered, counts);
  Constructed<PyAllgather, nb::handle, nb::handle, nb::handle>::bind(
      m, "Allgather", "The ranks' blocks, on every rank.",
      "source: Any, target: Any, *, counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `target` gets the ranks' `source`, one after the other; elements of any type. Arrays may have any strides; which
bytes are meant (array, Layout) says, of the target (array, [Layout, ...]), one a rank, without `counts`.

counts: elements of each rank's block, the same on all ranks; None: all are as long as `source`.
source: tasuki.in_place, on all ranks, where each rank's block lies in `target` already.)",
      make_allgather, source, target, only, counts);
  Constructed<PyGather, nb::handle, nb::handle, int, nb::handle>::bind(
      m, "Gather", "The ranks' blocks, on one rank.",
      "source: Any, target: Any = None, *, root: SupportsIndex = 0, counts: Sequence[SupportsIndex] | None = None, ",
      "Collective. `target` is for the root; there `source` may be tasuki.in_place. Else as `Allgather`.", make_gather,
      source, nb::arg("target") = nb::none(), only, root, counts);
  Constructed<PyScatter, nb::handle, nb::handle, int, nb::handle>::bind(
      m, "Scatter", "One rank's blocks, one to every rank.",
      "source: Any, target: Any, *, root: SupportsIndex = 0, counts: Sequence[SupportsIndex] | None = None, ",
      "Collective. `source` is for the root, others give None; there `target` may be tasuki.in_place, which leaves its "
      "block where it is. Layouts as for `Allgather`, a list of them for the source.",
      make_scatter, source, target, only, root, counts);
  Constructed<PyAlltoall, nb::handle, nb::handle, nb::handle, nb::handle>::bind(
      m, "Alltoall", "A block from every rank to every rank.",
      "source: Any, target: Any, *, send_counts: Sequence[SupportsIndex] | None = None, "
      "receive_counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `source` holds a block for every rank, `target` gets one of every rank; elements of any type. Arrays may have
any strides. As MPI_Alltoallw with (array, [Layout, ...]): the block for each rank, and that of each rank, has a layout.

send_counts, receive_counts: elements to and from each rank, which must fit what that rank says; None: all blocks are equal.
source: tasuki.in_place, on all ranks, where `target` holds what is sent.)",
      make_alltoall, source, target, only, nb::arg("send_counts") = nb::none(), nb::arg("receive_counts") = nb::none());
  Constructed<PyScan, nb::handle, nb::handle, nb::handle>::bind(
      m, "Scan", "The arrays of the ranks up to this one, combined in rank order.",
      "source: Any, target: Any, *, op: str | Operator | Callable[[Any, Any], Any] = 'sum', ",
      "Collective. As `Allreduce`.",
      [](PyScan* self, const ContextHandle& context, nb::handle from, nb::handle to, nb::handle by,
         const Common& common) { make_vector<Scan>(self, context, "Scan", from, to, by, false, common); },
      source, target, only, op);
  Constructed<PyExscan, nb::handle, nb::handle, nb::handle>::bind(
      m, "Exscan", "The arrays of the ranks before this one, combined in rank order.",
      "source: Any, target: Any, *, op: str | Operator | Callable[[Any, Any], Any] = 'sum', ",
      "Collective. As `Allreduce`; `target` of rank 0 stays as it is.",
      [](PyExscan* self, const ContextHandle& context, nb::handle from, nb::handle to, nb::handle by,
         const Common& common) { make_vector<Exscan>(self, context, "Exscan", from, to, by, false, common); },
      source, target, only, op);
  Constructed<PyBarrier, const std::string&>::bind(
      m, "Barrier", "An epoch ends on a rank when all ranks have started it.",
      "*, where: Literal['host', 'device'] = 'host', ",
      R"(Collective. where: 'device', on all ranks, makes it a barrier of streams: what a rank has put into its stream after it runs
when all ranks' streams have come as far.)",
      [](PyBarrier* self, const ContextHandle& context, const std::string& where, const Common& common) {
        create(
            self, context, "Barrier",
            [&](Reading&, Asked&) {
              if (where != "host" && where != "device")
                throw Error(fmt::format("argument 'where' is '{}'; it must be 'host' or 'device'", where));
            },
            [&](const Context& ranks, const Asked&) -> Operation {
              return Barrier(ranks, where == "device" ? Memory::device : Memory::host, common.options());
            });
      },
      only, nb::arg("where") = "host");
}

}  // namespace tasuki::python
