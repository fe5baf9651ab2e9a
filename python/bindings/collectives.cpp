// The collectives but Broadcast: made from arrays, whose sizes say how much is moved.
#include "tasuki/collectives.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <numeric>
#include <optional>

#include "arguments.hpp"
#include "module.hpp"
#include "operation.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

/// What `tasuki.in_place` is.
struct InPlace {};

/// One Python class for each.
template <int>
class PyCollective : public PyOperation {
  using PyOperation::PyOperation;
};

/// Keyword arguments that all have.
struct Common {
  std::string algorithm;
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;
  std::string path;
  std::string engine;
  CollectiveOptions options() const {
    CollectiveOptions to;
    to.algorithm = algorithm;
    to.trees = trees;
    to.arity = arity;
    to.chunk = chunk;
    to.path = path;
    to.engine = engine;
    return to;
  }
};

/// One of a collective's two buffers as it was given.
struct Side {
  const char* argument = "";
  bool here = false;      ///< it is an array
  bool in_place = false;  ///< it is tasuki.in_place
  Array array = {};
  std::int64_t count() const {
    return std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

std::string name_of(nb::handle dtype) {
  return nb::cast<std::string>(nb::str(dtype));
}

/// A pair of a value and an index, laid out as the core lays it out; `none` for all else.
DType pair_type(nb::handle dtype) {
  const nb::object names = dtype.attr("names");
  if (names.is_none() || nb::len(names) != 2) return DType::none;
  const nb::object value = dtype.attr("fields")[names[0]];
  const nb::object index = dtype.attr("fields")[names[1]];
  const DType first = number_type(value[0]);
  const DType second = number_type(index[0]);
  for (const DType pair :
       {DType::f32_i32, DType::f64_i32, DType::i32_i32, DType::i64_i32, DType::f64_i64, DType::i64_i64}) {
    if (to_string(pair) != fmt::format("{}_{}", to_string(first), to_string(second))) continue;
    if (element_bytes(dtype) == size_of(pair) && nb::cast<std::int64_t>(value[1]) == 0 &&
        nb::cast<std::int64_t>(index[1]) == size_of(first))
      return pair;
    throw Error(
        fmt::format("elements of type {} are pairs with other gaps than C's; make the type with numpy.dtype(..., "
                    "align=True)",
                    name_of(dtype)));
  }
  return DType::none;
}

/// The core's type of what is combined.
DType combined_type(nb::handle dtype, ReduceOp op) {
  if (const DType number = number_type(dtype); number != DType::none) return number;
  if (const DType pair = pair_type(dtype); pair != DType::none) return pair;
  if (nb::cast<std::string>(dtype.attr("kind")) == "b") {
    if (op == ReduceOp::sum)
      throw Error("argument 'op' is 'sum', which has no meaning for bool; give 'lor', or an array of integers");
    return DType::u8;
  }
  throw Error(
      fmt::format("elements of type {} cannot be combined; give integers, floats, complex numbers or bools of this "
                  "processor's byte order, or pairs of a value and an index",
                  name_of(dtype)));
}

/// Reads the arguments of one collective. What is wrong throws `Error`, on all ranks by way of `Owner::agree`.
class Reading {
 public:
  Reading(const Context& context, Named& agreement, OperationCore& core)
      : context_(context), agreement_(agreement), core_(core) {}

  Side side(nb::handle value, const char* argument, bool writable) {
    Side side{argument};
    if (value.is_none()) return side;
    if (nb::isinstance<InPlace>(value)) {
      side.in_place = true;
      return side;
    }
    side.here = true;
    side.array = array_from(value, argument, writable, true);
    check_gpu(side.array, context_, argument);
    if (!side.array.is_contiguous())
      throw Error(fmt::format("argument '{}' is not contiguous in C order; use numpy.ascontiguousarray", argument));
    core_.arrays.push_back(side.array);
    settle_type(side);
    return side;
  }

  /// For argument `name`; nothing for None.
  std::optional<std::vector<std::int64_t>> counts(nb::handle value, const char* name) const {
    if (value.is_none()) return {};
    std::vector<nb::object> entries;
    std::vector<std::int64_t> list;
    const bool sequence = nb::try_cast(value, entries);
    for (const nb::object& entry : entries)
      if (std::int64_t count = 0; as_integer(entry, count)) list.push_back(count);
    if (!sequence || list.size() != entries.size() || std::ssize(list) != context_.size())
      throw Error(fmt::format("argument '{}' is {}; it must be {} ints, one a rank", name, shown(value),
                              context_.size()));
    for (std::size_t r = 0; r < list.size(); ++r)
      if (list[r] < 0)
        throw Error(fmt::format("argument '{}' is {} for rank {}; it must not be negative", name, list[r], r));
    return list;
  }

  void need(const Side& side) const {
    if (!side.here && !side.in_place)
      throw Error(fmt::format("argument '{}' is None; give an array on rank {}", side.argument, context_.rank()));
  }
  void need_array(const Side& side) const {
    need(side);
    if (side.in_place)
      throw Error(fmt::format("argument '{}' is in_place, which only the other one may be", side.argument));
  }
  void root_only(const Side& side, int root) const {
    if (side.in_place && context_.rank() != root)
      throw Error(fmt::format("argument '{}' is in_place, which is for the root; rank {} is not", side.argument,
                              context_.rank()));
  }
  static void need_count(const Side& side, std::int64_t expected) {
    if (side.here && side.count() != expected)
      throw Error(fmt::format("argument '{}' has {} elements; it must have {}", side.argument, side.count(), expected));
  }

  /// Elements of a block. `part` has this rank's; `total` has those of all ranks.
  std::int64_t block(const Side& part, const Side& total,
                     const std::optional<std::vector<std::int64_t>>& counts) const {
    const std::int64_t ranks = context_.size();
    if (counts) {
      need_count(part, (*counts)[static_cast<std::size_t>(context_.rank())]);
      need_count(total, std::accumulate(counts->begin(), counts->end(), std::int64_t{0}));
      return 0;
    }
    if (!part.here && total.here && total.count() % ranks != 0)
      throw Error(fmt::format("argument '{}' has {} elements, which are no equal blocks for {} ranks; give 'counts'",
                              total.argument, total.count(), ranks));
    const std::int64_t count = part.here ? part.count() : total.here ? total.count() / ranks : 0;
    need_count(total, count * ranks);
    return count;
  }

  void apart(const Side& a, const Side& b) const {
    if (!a.here || !b.here || a.array.high() == 0 || b.array.high() == 0) return;
    const auto begin = [](const Side& side) { return reinterpret_cast<std::uintptr_t>(side.array.data); };
    if (begin(a) < begin(b) + static_cast<std::uintptr_t>(b.array.high()) &&
        begin(b) < begin(a) + static_cast<std::uintptr_t>(a.array.high()))
      throw Error(fmt::format("arguments '{}' and '{}' overlap in memory; work in place with tasuki.in_place",
                              a.argument, b.argument));
  }

  nb::object dtype = nb::none();

 private:
  void settle_type(const Side& side) {
    if (dtype.is_none()) {
      dtype = side.array.dtype;
      agreement_.same("type", name_of(dtype));
    } else if (!dtype.equal(side.array.dtype)) {
      throw Error(fmt::format("arguments 'source' and 'target' have elements of {} and {}; they must be equal",
                              name_of(dtype), name_of(side.array.dtype)));
    }
  }

  const Context& context_;
  Named& agreement_;
  OperationCore& core_;
};

/// What a collective was asked for, ready for the core.
struct Asked {
  Side source, target;
  DType type = DType::u8;
  ReduceOp op = ReduceOp::sum;
  std::int64_t count = 0;
  std::optional<std::vector<std::int64_t>> counts = {};
  std::vector<std::int64_t> receive_counts = {};
  const void* in() const { return source.in_place ? in_place : source.array.data; }
  void* out() const { return target.in_place ? in_place : target.array.data; }

  /// What is combined has a type of the core's.
  void combine(const Reading& reading, const std::string& name) {
    op = reduce_op_from_string(name);
    if (!reading.dtype.is_none()) type = combined_type(reading.dtype, op);
  }
  /// What is only moved is moved as bytes, unless the core knows its type.
  void move(const Reading& reading) {
    if (reading.dtype.is_none()) return;
    type = number_type(reading.dtype);
    if (type != DType::none) return;
    type = DType::u8;
    const std::int64_t bytes = element_bytes(reading.dtype);
    count *= bytes;
    if (counts)
      for (std::int64_t& each : *counts) each *= bytes;
    for (std::int64_t& each : receive_counts) each *= bytes;
  }
};

/// Reads by `read(Reading&, Asked&)` on all ranks, makes the operation by `make(Context, Asked)`.
template <class Py, class Read, class Make>
void create(Py* self, const ContextHandle& context, const char* name, Read&& read, Make&& make) {
  const std::shared_ptr<Owner>& owner = context.owner;
  OperationCore core;
  Asked asked;
  owner->agree(name, [&](Named& agreement) {
    Reading reading(owner->context(), agreement, core);
    read(reading, asked);
  });
  core.operation = make(owner->context(), asked);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  new (self) Py(owner, std::move(core));
}

// A vector that is combined on every rank.
template <class Operation, class Py>
void make_vector(Py* self, const ContextHandle& context, const char* name, nb::handle source, nb::handle target,
                 const std::string& op, const Common& common) {
  create(
      self, context, name,
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false);
        asked.target = reading.side(target, "target", true);
        reading.need(asked.source);
        reading.need_array(asked.target);
        asked.count = asked.target.count();
        Reading::need_count(asked.source, asked.count);
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op);
      },
      [&](const Context& ranks, const Asked& a) -> tasuki::Operation {
        return Operation(ranks, a.in(), a.out(), a.count, a.type, a.op, common.options());
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
                 const std::string& op, const Common& common) {
  create(
      self, context, "Reduce",
      [&](Reading& reading, Asked& asked) {
        const bool is_root = context.owner->context().rank() == root;
        asked.source = reading.side(source, "source", false);
        if (is_root) asked.target = reading.side(target, "target", true);
        reading.need(asked.source);
        reading.root_only(asked.source, root);
        if (is_root) reading.need_array(asked.target);
        asked.count = asked.source.here ? asked.source.count() : asked.target.count();
        Reading::need_count(asked.target, asked.target.here ? asked.count : 0);
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        return Reduce(ranks, root, a.in(), a.out(), a.count, a.type, a.op, common.options());
      });
}

void make_reduce_scatter(PyReduceScatter* self, const ContextHandle& context, nb::handle source, nb::handle target,
                         const std::string& op, nb::handle counts, const Common& common) {
  create(
      self, context, "ReduceScatter",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false);
        asked.target = reading.side(target, "target", true);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.need_array(asked.target);
        // In place, the target holds what the source would.
        asked.count = asked.source.in_place ? reading.block(asked.source, asked.target, asked.counts)
                                            : reading.block(asked.target, asked.source, asked.counts);
        reading.apart(asked.source, asked.target);
        asked.combine(reading, op);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.counts) return ReduceScatter(ranks, a.in(), a.out(), *a.counts, a.type, a.op, common.options());
        return ReduceScatter(ranks, a.in(), a.out(), a.count, a.type, a.op, common.options());
      });
}

void make_allgather(PyAllgather* self, const ContextHandle& context, nb::handle source, nb::handle target,
                    nb::handle counts, const Common& common) {
  create(
      self, context, "Allgather",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false);
        asked.target = reading.side(target, "target", true);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.need_array(asked.target);
        asked.count = reading.block(asked.source, asked.target, asked.counts);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
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
        asked.source = reading.side(source, "source", false);
        if (is_root) asked.target = reading.side(target, "target", true);
        asked.counts = reading.counts(counts, "counts");
        reading.need(asked.source);
        reading.root_only(asked.source, root);
        if (is_root) reading.need_array(asked.target);
        asked.count = reading.block(asked.source, asked.target, asked.counts);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
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
        if (is_root) asked.source = reading.side(source, "source", false);
        asked.target = reading.side(target, "target", true);
        asked.counts = reading.counts(counts, "counts");
        if (is_root) reading.need_array(asked.source);
        reading.need(asked.target);
        reading.root_only(asked.target, root);
        asked.count = reading.block(asked.target, asked.source, asked.counts);
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.counts) return Scatter(ranks, root, a.in(), a.out(), *a.counts, a.type, common.options());
        return Scatter(ranks, root, a.in(), a.out(), a.count, a.type, common.options());
      });
}

void make_alltoall(PyAlltoall* self, const ContextHandle& context, nb::handle source, nb::handle target,
                   nb::handle send_counts, nb::handle receive_counts, const Common& common) {
  create(
      self, context, "Alltoall",
      [&](Reading& reading, Asked& asked) {
        asked.source = reading.side(source, "source", false);
        asked.target = reading.side(target, "target", true);
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
          Reading::need_count(asked.source, asked.target.count());
        }
        reading.apart(asked.source, asked.target);
        asked.move(reading);
      },
      [&](const Context& ranks, const Asked& a) -> Operation {
        if (a.counts) return Alltoall(ranks, a.in(), a.out(), *a.counts, a.receive_counts, a.type, common.options());
        return Alltoall(ranks, a.in(), a.out(), a.count, a.type, common.options());
      });
}

constexpr const char* kOptions =
    "algorithm: str = 'auto', trees: SupportsIndex = 0, arity: SupportsIndex = 0, chunk: SupportsIndex = 0, "
    "path: str = 'auto', engine: str = 'auto') -> None";

/// Binds a class whose constructor takes `Arguments` and then the options that all have. `signature`: its own part.
/// nanobind keeps the texts' addresses.
template <class Py, class... Arguments, class... Names>
void bind(nb::module_& m, const char* name, const char* about, const char* signature, const char* doc,
          void (*make)(Py*, const ContextHandle&, Arguments..., const Common&), const Names&... names) {
  static std::string whole;
  whole = fmt::format("def __init__(self, context: Context, {}{}", signature, kOptions);
  nb::class_<Py, PyOperation>(m, name, about)
      .def(
          "__init__",
          [make](Py* self, const ContextHandle& context, Arguments... arguments, const std::string& algorithm,
                 int trees, int arity, std::int64_t chunk, const std::string& path, const std::string& engine) {
            make(self, context, arguments..., Common{algorithm, trees, arity, chunk, path, engine});
          },
          nb::arg("context"), names..., nb::arg("algorithm") = "auto", nb::arg("trees") = 0, nb::arg("arity") = 0,
          nb::arg("chunk") = 0, nb::arg("path") = "auto", nb::arg("engine") = "auto", nb::sig(whole.c_str()), doc);
}

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
  const auto root = nb::arg("root") = 0;
  const nb::kw_only only;

  bind<PyAllreduce, nb::handle, nb::handle, const std::string&>(
      m, "Allreduce", "All ranks' arrays, combined element by element, on every rank.",
      "source: Any, target: Any, *, op: str = 'sum', ",
      R"(Collective. `source` and `target` have the same type and number of elements on all ranks.

op: 'sum', 'product', 'min', 'max', 'band', 'bor', 'bxor', 'land', 'lor', 'lxor', 'minloc', 'maxloc' (of pairs).
source: tasuki.in_place, on all ranks, where `target` holds what is combined.
algorithm, trees, arity, chunk: docs/collectives.md.)",
      [](PyAllreduce* self, const ContextHandle& context, nb::handle from, nb::handle to, const std::string& by,
         const Common& common) { make_vector<Allreduce>(self, context, "Allreduce", from, to, by, common); },
      source, target, only, op);
  bind<PyReduce, nb::handle, nb::handle, int, const std::string&>(
      m, "Reduce", "All ranks' arrays, combined element by element, on one rank.",
      "source: Any, target: Any = None, *, root: SupportsIndex = 0, op: str = 'sum', ",
      "Collective. `target` is for the root; there `source` may be tasuki.in_place. Else as `Allreduce`.", make_reduce,
      source, nb::arg("target") = nb::none(), only, root, op);
  bind<PyReduceScatter, nb::handle, nb::handle, const std::string&, nb::handle>(
      m, "ReduceScatter", "A block for every rank on every rank; rank r gets block r of all, combined.",
      "source: Any, target: Any, *, op: str = 'sum', counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `source` holds the blocks one after the other, `target` gets this rank's.

counts: elements of each rank's block, the same on all ranks; None: all are as long as `target`.
source: tasuki.in_place, on all ranks, where `target` holds all blocks; the result is at its beginning.)",
      make_reduce_scatter, source, target, only, op, counts);
  bind<PyAllgather, nb::handle, nb::handle, nb::handle>(
      m, "Allgather", "The ranks' blocks, on every rank.",
      "source: Any, target: Any, *, counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `target` gets the ranks' `source`, one after the other; elements of any type.

counts: elements of each rank's block, the same on all ranks; None: all are as long as `source`.
source: tasuki.in_place, on all ranks, where each rank's block lies in `target` already.)",
      make_allgather, source, target, only, counts);
  bind<PyGather, nb::handle, nb::handle, int, nb::handle>(
      m, "Gather", "The ranks' blocks, on one rank.",
      "source: Any, target: Any = None, *, root: SupportsIndex = 0, counts: Sequence[SupportsIndex] | None = None, ",
      "Collective. `target` is for the root; there `source` may be tasuki.in_place. Else as `Allgather`.", make_gather,
      source, nb::arg("target") = nb::none(), only, root, counts);
  bind<PyScatter, nb::handle, nb::handle, int, nb::handle>(
      m, "Scatter", "One rank's blocks, one to every rank.",
      "source: Any, target: Any, *, root: SupportsIndex = 0, counts: Sequence[SupportsIndex] | None = None, ",
      "Collective. `source` is for the root, others give None; there `target` may be tasuki.in_place, which leaves its "
      "block where it is.",
      make_scatter, source, target, only, root, counts);
  bind<PyAlltoall, nb::handle, nb::handle, nb::handle, nb::handle>(
      m, "Alltoall", "A block from every rank to every rank.",
      "source: Any, target: Any, *, send_counts: Sequence[SupportsIndex] | None = None, "
      "receive_counts: Sequence[SupportsIndex] | None = None, ",
      R"(Collective. `source` holds a block for every rank, `target` gets one of every rank; elements of any type.

send_counts, receive_counts: elements to and from each rank, which must fit what that rank says; None: all blocks are equal.
source: tasuki.in_place, on all ranks, where `target` holds what is sent.)",
      make_alltoall, source, target, only, nb::arg("send_counts") = nb::none(),
      nb::arg("receive_counts") = nb::none());
  bind<PyScan, nb::handle, nb::handle, const std::string&>(
      m, "Scan", "The arrays of the ranks up to this one, combined in rank order.",
      "source: Any, target: Any, *, op: str = 'sum', ", "Collective. As `Allreduce`.",
      [](PyScan* self, const ContextHandle& context, nb::handle from, nb::handle to, const std::string& by,
         const Common& common) { make_vector<Scan>(self, context, "Scan", from, to, by, common); },
      source, target, only, op);
  bind<PyExscan, nb::handle, nb::handle, const std::string&>(
      m, "Exscan", "The arrays of the ranks before this one, combined in rank order.",
      "source: Any, target: Any, *, op: str = 'sum', ",
      "Collective. As `Allreduce`; `target` of rank 0 stays as it is.",
      [](PyExscan* self, const ContextHandle& context, nb::handle from, nb::handle to, const std::string& by,
         const Common& common) { make_vector<Exscan>(self, context, "Exscan", from, to, by, common); },
      source, target, only, op);
  bind<PyBarrier>(
      m, "Barrier", "An epoch ends on a rank when all ranks have started it.", "*, ", "Collective.",
      [](PyBarrier* self, const ContextHandle& context, const Common& common) {
        create(
            self, context, "Barrier", [](Reading&, Asked&) {},
            [&](const Context& ranks, const Asked&) -> Operation { return Barrier(ranks, common.options()); });
      },
      only);
}

}  // namespace tasuki::python
