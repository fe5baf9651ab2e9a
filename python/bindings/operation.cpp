// Halo, Transfer and Broadcast: made from Python's arguments; start, test and wait go straight to the core, on GPUs
// with the stream that the user's library is in.
#include "operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>

#include "arguments.hpp"
#include "kernel.hpp"
#include "layout.hpp"
#include "module.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/error.hpp"
#include "tasuki/halo.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki::python {
namespace {

/// `with halo.overlap():` starts, computes, waits.
struct Overlap {
  nb::object operation;
  nb::object stream;
  Stream used = nullptr;
  const PyOperation& target() const { return inside<PyOperation>(operation); }
};

/// A field, or a pair (field, width).
HaloField halo_field(nb::handle entry, std::vector<nb::object>& keep) {
  nb::object field = nb::borrow(entry);
  nb::object width = nb::none();
  if (nb::isinstance<nb::tuple>(entry) && nb::len(entry) == 2) {
    field = entry[0];
    width = entry[1];
  }
  if (!nb::isinstance<PyField>(field))
    throw Error(
        fmt::format("argument 'fields' has the entry {}; it must be a Field or a pair (Field, width)", shown(entry)));
  keep.push_back(field);
  const AnyField& core = inside<PyField>(field).core();
  return width.is_none() ? HaloField(core) : HaloField(core, width_from(width, core.grid().ndims(), "width"));
}

void make_halo(PyHalo* self, nb::handle fields, nb::handle width, Truth corners, Truth reverse, Truth alternating,
               const std::string& path, const std::string& engine, int blocks, const Cuts& cuts) {
  std::vector<nb::object> entries;
  if (nb::isinstance<PyField>(fields) || nb::isinstance<nb::tuple>(fields) || !nb::try_cast(fields, entries)) {
    // One field, or one pair; a tuple of fields is a list all the same.
    if (nb::isinstance<nb::tuple>(fields) && !(nb::len(fields) == 2 && !nb::isinstance<PyField>(fields[1]))) {
      entries = nb::cast<std::vector<nb::object>>(fields);
    } else {
      entries = {nb::borrow(fields)};
    }
  }
  if (entries.empty()) throw Error("Halo: argument 'fields' is empty; give at least one field");
  OperationCore core;
  // Which context to agree with is known from the first field only.
  const bool entry_is_pair = nb::isinstance<nb::tuple>(entries[0]) && nb::len(entries[0]) > 0;
  const nb::object first = entry_is_pair ? nb::object(entries[0][0]) : entries[0];
  if (!nb::isinstance<PyField>(first))
    throw Error(fmt::format(
        "Halo: argument 'fields' is {}; it must be a Field, a pair (Field, width) or a list of these", shown(fields)));
  const std::shared_ptr<Owner>& owner = inside<PyField>(first).shared_owner();
  std::vector<HaloField> halos;
  owner->agree("Halo", [&] {
    for (const nb::object& entry : entries) {
      const bool pair = nb::isinstance<nb::tuple>(entry);
      halos.push_back(
          halo_field(pair || width.is_none() ? nb::object(entry) : nb::make_tuple(entry, width), core.fields));
    }
  });
  HaloOptions options;
  options.corners = corners;
  options.reverse = reverse;
  options.alternating = alternating;
  options.path = path;
  options.engine = engine;
  options.blocks = blocks;
  options.cuts = lists_of(cuts);
  core.operation = Halo(halos, options);
  if (nb::inst_ptr<PyField>(core.fields[0])->on_gpu()) core.fork.emplace();
  new (self) PyHalo(owner, std::move(core));
}

/// Type and shape, which must agree between ranks; nothing for bytes, which may become anything.
std::string elements_of(const Array& array) {
  if (array.element_bytes == 1) return {};
  return fmt::format("{} of shape ({})", nb::cast<std::string>(nb::str(array.dtype)), fmt::join(array.shape, ", "));
}

/// One side of a transfer as it was given.
struct Side {
  const char* argument;
  bool writable;
  int rank = 0;
  std::vector<nb::object> parts = {};
};

/// (rank, array), (rank, array, layout) or, on the other ranks, (rank, None). Throws `Error` on this rank alone:
/// without the sides' ranks nobody knows who is to hear of it.
Side parse_side(nb::handle value, const char* argument, bool writable, const Context& context) {
  Side side{argument, writable};
  if (!nb::try_cast(value, side.parts) || side.parts.size() < 2 || side.parts.size() > 3 ||
      !as_integer(side.parts[0], side.rank))
    throw Error(
        fmt::format("Transfer: rank {}: argument '{}' is {}; it must be (rank, array) or (rank, array, layout), where "
                    "ranks other than that one may give None for the array",
                    context.rank(), argument, shown(value)));
  if (side.rank < 0 || side.rank >= context.size())
    throw Error(fmt::format("Transfer: rank {}: argument '{}' names rank {}, but the context has ranks 0 to {}",
                            context.rank(), argument, side.rank, context.size() - 1));
  return side;
}

TransferSide transfer_side(const Side& given, const Context& context, std::vector<Array>& keep) {
  const int rank = context.rank();
  const auto& [argument, writable, where, parts] = given;
  TransferSide side;
  side.rank = where;
  if (side.rank != rank) return side;
  if (parts[1].is_none())
    throw Error(fmt::format("argument '{}' has no array on rank {}, which is that side", argument, rank));
  const Array array = array_from(parts[1], fmt::format("{}[1]", argument), writable, true);
  check_gpu(array, context, fmt::format("{}[1]", argument));
  side.base = array.data;
  const bool as_bytes = parts.size() == 3 && !parts[2].is_none();
  side.layout = as_bytes ? layout_inside(parts[2], array, argument) : array.layout();
  if (!as_bytes) side.elements = elements_of(array);
  keep.push_back(array);
  return side;
}

void make_transfer(PyTransfer* self, const ContextHandle& context, nb::handle source, nb::handle target,
                   const std::string& path, const std::string& engine, int blocks) {
  const std::shared_ptr<Owner>& owner = context.owner;
  OperationCore core;
  const Side from_here = parse_side(source, "source", false, owner->context());
  const Side to_there = parse_side(target, "target", true, owner->context());
  TransferSide from;
  TransferSide to;
  const int sides[] = {from_here.rank, to_there.rank};
  owner->agree("Transfer", sides, [&] {
    from = transfer_side(from_here, owner->context(), core.arrays);
    to = transfer_side(to_there, owner->context(), core.arrays);
  });
  OperationOptions options;
  options.path = path;
  options.engine = engine;
  options.blocks = blocks;
  core.operation = Transfer(owner->context(), from, to, options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  core.idle = core.operation.plan().commands.empty();
  new (self) PyTransfer(owner, std::move(core));
}

void make_broadcast(PyBroadcast* self, const ContextHandle& context, int root, nb::handle data, int trees, int arity,
                    std::int64_t chunk, const std::string& path, const std::string& engine,
                    const std::string& algorithm, int blocks) {
  const std::shared_ptr<Owner>& owner = context.owner;
  OperationCore core;
  std::optional<Layout> layout;  // given beside the array, or of one that is not contiguous
  owner->agree("Broadcast", [&](Named& agreement) {
    const bool pair = nb::isinstance<nb::tuple>(data) && nb::len(data) == 2;
    const nb::object given = pair ? nb::object(data[0]) : nb::borrow(data);
    core.arrays.push_back(array_from(given, "array", owner->context().rank() != root, true));
    const Array& seen = core.arrays[0];
    check_gpu(seen, owner->context(), "array");
    const std::string elements = pair ? "" : elements_of(seen);
    agreement.same("array", elements.empty() ? "bytes" : elements);
    if (pair)
      layout = layout_inside(data[1], seen, "array");
    else if (!seen.is_contiguous())
      layout = seen.layout();
  });
  const Array& array = core.arrays[0];
  bool with_layouts = false;
  for (const char other : owner->context().allgather(layout ? 'l' : '-')) with_layouts = with_layouts || other == 'l';
  BroadcastOptions options;
  options.trees = trees;
  options.arity = arity;
  options.chunk = chunk;
  options.path = path;
  options.engine = engine;
  options.algorithm = algorithm;
  options.blocks = blocks;
  if (with_layouts)
    core.operation = Broadcast(owner->context(), root, array.data, layout ? *layout : array.layout(), options);
  else
    core.operation = Broadcast(owner->context(), root, array.data, array.high(), options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  new (self) PyBroadcast(owner, std::move(core));
}

}  // namespace

PyOperation::PyOperation(std::shared_ptr<Owner> owner, OperationCore core)
    : Held<OperationCore>(std::move(owner), std::move(core)) {
  text_ = fmt::format(" operation '{}'", operation().plan().operation);
  for (const Array& array : this->core().arrays) watched_.emplace_back(array, "an array of this operation");
  for (const nb::object& object : this->core().fields) {
    const auto* field = nb::inst_ptr<PyField>(object);
    for (const Array& source : field->sources())
      watched_.emplace_back(source, fmt::format("the memory of field '{}'", field->core().name()));
  }
  for (const auto& [array, what] : watched_)
    if (library_ == Library::none) library_ = library_of(array.object);
}

void PyOperation::check_unmoved() const {
  for (const auto& [array, what] : watched_) array.check_unmoved(what);
}

void PyOperation::refuse_stream(nb::handle stream, const char* call) const {
  if (stream.is_none() || core().idle) return;
  throw Error(
      fmt::format("rank {}: {}: {}: argument 'stream' is {}, but streams are for operations on GPU memory, and "
                  "this one is on the host; leave it out",
                  owner().context().rank(), operation().plan().operation, call, shown(stream)));
}

Stream PyOperation::stream_of(nb::handle stream) const {
  select_gpu(use_gpu(owner().context()));
  return stream_or_current(stream, library_);
}

void PyOperation::start(nb::handle stream) const {
  check_unmoved();
  if (on_gpu()) {
    operation().start(stream_of(stream));
  } else {
    refuse_stream(stream, "start");
    operation().start();
  }
}

void PyOperation::wait(nb::handle stream) const {
  if (on_gpu()) {
    operation().wait(stream_of(stream));
  } else {
    refuse_stream(stream, "wait");
    operation().wait();
  }
}

void PyOperation::run(nb::handle stream) const {
  if (on_gpu()) {
    check_unmoved();
    operation().run(stream_of(stream));
  } else {
    refuse_stream(stream, "run");
    start(stream);
    wait(stream);
  }
}

Stream PyOperation::begin_overlap(nb::handle stream) const {
  if (!on_gpu()) {
    refuse_stream(stream, "overlap");
    start(stream);
    return nullptr;
  }
  check_unmoved();
  Stream used = stream_of(stream);
  operation().run(core().fork->branch(used));
  return used;
}

void PyOperation::end_overlap(Stream stream) const {
  if (on_gpu()) {
    core().fork->join(stream);
  } else {
    operation().wait();
  }
}

void PyOperation::free() {
  operation().free();
  set_freed();
  watched_.clear();
  core().fields.clear();
  core().arrays.clear();
}

std::string PyOperation::in_use() const {
  return operation().active() ? "an operation is still active; wait for it first" : "";
}

void bind_operations(nb::module_& m) {
  nb::class_<PyOperation>(m, "Operation",
                          R"(A prepared communication. Made collectively; every rank runs it as often as it likes.

Any number may be active at once, started in any order that differs between ranks. While a wait goes on, other Python
threads run, and Ctrl-C ends it: the operation is then still active and may be waited for again.

On GPU memory an epoch is work of a stream, in its order; the host does not wait (`tasuki.synchronize` does), and graph
captures of the stream take it in. `stream` is a stream of CuPy or PyTorch, an object with `__cuda_stream__`, or an
address. None: the current stream of the library whose arrays the fields wrap; else that of CuPy or PyTorch, if the
process uses exactly one of them; else the legacy default stream. On host memory it must be None.)")
      .def("start", &PyOperation::start, nb::arg("stream") = nb::none(),
           nb::sig("def start(self, stream: Any = None) -> None"),
           R"(Begins an epoch. Local. Raises if the operation is active, or if an array that it uses has moved.

On GPUs: what is sent may be changed by work that follows in the stream.)")
      .def(
          "test", [](const PyOperation& op) { return op.operation().test(); },
          "True if the epoch started last has ended on this rank. Local; drives the operation, does not block. Not on "
          "GPUs.")
      .def("wait", &PyOperation::wait, nb::arg("stream") = nb::none(),
           nb::sig("def wait(self, stream: Any = None) -> None"),
           R"(Returns when the epoch started last has ended on this rank; at once if none is active.

Raises tasuki.Error if a rank that it depends on has died, or after the context's deadline.
On GPUs: returns at once; what has arrived may be read by work that follows in the stream.)")
      .def("run", &PyOperation::run, nb::arg("stream") = nb::none(),
           nb::sig("def run(self, stream: Any = None) -> None"), "`start` and `wait`; on GPUs in one kernel.")
      .def(
          "device",
          [](nb::handle op, int blocks, int threads, int cpu_threads, nb::handle cells) {
            return handle_of(op, false, blocks, threads, cpu_threads, cells);
          },
          nb::kw_only(), nb::arg("blocks") = 1, nb::arg("threads") = 256, nb::arg("cpu_threads") = 1,
          nb::arg("cells") = nb::none(),
          nb::sig("def device(self, *, blocks: SupportsIndex = 1, threads: SupportsIndex = 256, "
                  "cpu_threads: SupportsIndex = 1, "
                  "cells: Sequence[Sequence[tuple[slice, ...]]] | None = None) -> KernelArgument"),
          R"(A handle, with which a group of blocks of a kernel runs epochs by itself (docs/kernels.md).

Local. A call with `cells` that makes a new handle is collective over the context: all ranks give cells then.

blocks: of the group. threads: of a block on a GPU; cpu_threads: of a block that is threads of the host.
cells: of a halo, for each block boxes of this rank's cells (slices of global indices) that it computes. Then the blocks
do not meet where they can do without: `device_group` says whether, and docs/kernels.md what the kernel must do.
Fields with two copies are used as they are shown now, and as the kernel swaps its pointers; call `swap` as often
afterwards. An operation has handles for one group at a time.
Raises tasuki.Error if the operation is active, combines elements (see `device_reducing`), or has a piece that only the
host can start, naming its path and what to force.)")
      .def(
          "device_reducing",
          [](nb::handle op, int blocks, int threads, int cpu_threads) {
            return handle_of(op, true, blocks, threads, cpu_threads, nb::none());
          },
          nb::kw_only(), nb::arg("blocks") = 1, nb::arg("threads") = 256, nb::arg("cpu_threads") = 1,
          nb::sig("def device_reducing(self, *, blocks: SupportsIndex = 1, threads: SupportsIndex = 256, "
                  "cpu_threads: SupportsIndex = 1) -> KernelArgument"),
          "The same as `tasuki::device::ReducingHandle`, for operations that combine elements: reverse halos, "
          "reductions.")
      .def_prop_ro(
          "device_group", [](const PyOperation& op) { return op.operation().device_group(); },
          "How the group of the newest handle runs the operation: whether its blocks meet, and why. '' without one.")
      .def("free", &PyOperation::free, "Gives everything back. Local. Raises if the operation is active.")
      .def(
          "overlap",
          [](nb::handle op, nb::handle stream) {
            check_made(op);
            return Overlap{nb::borrow(op), nb::borrow(stream)};
          },
          nb::arg("stream") = nb::none(), nb::sig("def overlap(self, stream: Any = None) -> _Overlap"),
          R"(`with operation.overlap(): ...` starts, computes the body meanwhile, and waits.

If the body raises, the operation is waited for all the same, so that it can be used again.
On GPUs: the exchange goes into a second stream, after the work that `stream` has so far and beside what the body puts
into it; work that follows the body comes after both.)")
      .def(
          "explain", [](const PyOperation& op, bool measured) { return op.operation().explain(measured); },
          nb::arg("measured") = false,
          R"(The pieces of this rank, a table: bytes, pattern, path, predicted µs, why other paths were not taken. Local.

measured: a second table says what each command took in the last epochs, at most 64, beside what it was predicted to; the
first such call begins to keep the times. Raises if the operation is active, and on GPU memory unless TASUKI_TRACE was set
when it was made. What an epoch takes on all ranks together is for `predict`.)")
      .def_prop_ro("active", [](const PyOperation& op) { return op.operation().active(); })
      .def_prop_ro(
          "plan", [](const PyOperation& op) { return op.operation().plan(); }, "This rank's plan, a copy.")
      .def_prop_ro(
          "memory", [](const PyOperation& op) { return op.operation().memory(); },
          "Bytes that the plan and its lowered form occupy on this rank.")
      .def("__repr__", &PyOperation::text);
  nb::class_<Overlap>(m, "_Overlap")
      .def("__enter__",
           [](nb::handle self) {
             auto& overlap = inside<Overlap>(self);
             overlap.used = overlap.target().begin_overlap(overlap.stream);
             return nb::borrow(self);
           })
      .def(
          "__exit__", [](const Overlap& self, const nb::args&) { self.target().end_overlap(self.used); },
          nb::sig("def __exit__(self, *exception: object) -> None"));

  nb::class_<PyHalo, PyOperation>(m, "Halo", R"(Fills the shadows of fields from the ranks that own the cells.

Cells outside a grid that is not periodic are left alone. A field with two copies is exchanged in the copy that is
current at `start`.)")
      .def("__init__", make_halo, nb::arg("fields"), nb::kw_only(), nb::arg("width") = nb::none(),
           nb::arg("corners") = true, nb::arg("reverse") = false, nb::arg("alternating") = false,
           nb::arg("path") = "auto", nb::arg("engine") = "auto", nb::arg("blocks") = 0, nb::arg("cuts") = nb::none(),
           nb::sig("def __init__(self, fields: Field | tuple[Field, Width] | Sequence[Field | tuple[Field, Width]], *, "
                   "width: Width | None = None, corners: Truth = True, reverse: Truth = False, "
                   "alternating: Truth = False, path: str = 'auto', engine: str = 'auto', blocks: SupportsIndex = 0, "
                   "cuts: Sequence[Sequence[SupportsIndex] | None] | None = None) -> None"),
           R"(Collective, with the same arguments on all ranks.

fields: a field, a pair (field, width), or a list of these, on any grids of one context.
width: cells of the shadow that take part, for fields given without one; None: the whole shadow.
corners: also the cells outside the box in two or more dimensions.
reverse: add every shadow cell into its owner instead (the adjoint: the gradient of the exchange).
alternating: a promise that each field with two copies is swapped exactly once between two starts.
path, engine: 'auto', or the name of the one to force.
blocks: on GPUs, thread blocks of 256 that an exchange may take, 0: as many as it gains by. Few (32) leave more of the
GPU to what computes meanwhile.
cuts: by dimension, global indices where messages are cut besides at the ranks' boxes; for kernels whose blocks exchange
without meeting (`device`).)");
  nb::class_<PyTransfer, PyOperation>(m, "Transfer",
                                      "Any strided array of one rank to any of another's, of equal bytes, in one pass.")
      .def(
          "__init__", make_transfer, nb::arg("context"), nb::arg("source"), nb::arg("target"), nb::kw_only(),
          nb::arg("path") = "auto", nb::arg("engine") = "auto", nb::arg("blocks") = 0,
          nb::sig("def __init__(self, context: Context, source: tuple[Any, ...], target: tuple[Any, ...], *, "
                  "path: str = 'auto', engine: str = 'auto', blocks: SupportsIndex = 0) -> None"),
          R"(Made by the two ranks, which may be the same; others need not make it. If they do, it is local, and running
it does nothing.

source, target: (rank, array), or (rank, array, layout) with a Layout in bytes relative to the array's first element.
Other ranks give (rank, None). Without a layout the array's own shape and strides say which elements, in C order; both
arrays then have the same type and shape, unless one of them has elements of one byte. The
target must be writable. Arrays of `shared_array` and fields move without staging. Both arrays may be on GPUs, once all
ranks have called `use_gpu`.
blocks: as for `Halo`.
Raises tasuki.Error on both ranks if the sizes differ, or an array is of no use; on this rank at once if a side names no
rank of the context.)");
  nb::class_<PyBroadcast, PyOperation>(m, "Broadcast", "One rank's array to all ranks, pipelined over trees.")
      .def(
          "__init__", make_broadcast, nb::arg("context"), nb::arg("root"), nb::arg("array"), nb::kw_only(),
          nb::arg("trees") = 0, nb::arg("arity") = 0, nb::arg("chunk") = 0, nb::arg("path") = "auto",
          nb::arg("engine") = "auto", nb::arg("algorithm") = "auto", nb::arg("blocks") = 0,
          nb::sig("def __init__(self, context: Context, root: SupportsIndex, array: object, *, "
                  "trees: SupportsIndex = 0, arity: SupportsIndex = 0, chunk: SupportsIndex = 0, "
                  "path: str = 'auto', engine: str = 'auto', algorithm: str = 'auto', "
                  "blocks: SupportsIndex = 0) -> None"),
          R"(Collective. `array` has the same type and shape on all ranks and is writable except on `root`; its strides may be any
and may differ. Arrays of bytes may differ in shape: `array.view('u1')` is the way around. Or it is a pair (array, Layout)
on all ranks, which name equally many bytes. On the host or, on all ranks, on GPUs.

algorithm: docs/collectives.md. trees, arity, chunk (bytes): 0: chosen by cost. blocks: as for `Halo`.)");
}

}  // namespace tasuki::python
