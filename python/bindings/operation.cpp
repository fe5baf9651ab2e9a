// Operations in Python: start, test and wait go straight to the core, on GPUs with the stream that the user's library
// is in. Making them is in making.cpp and collectives.cpp.
#include "operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "arguments.hpp"
#include "kernel.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {
namespace {

/// `with halo.overlap():` starts, computes, waits.
struct Overlap {
  nb::object operation;
  nb::object stream;
  Stream used = nullptr;
  const PyOperation& target() const { return inside<PyOperation>(operation); }
};

}  // namespace

PyOperation::PyOperation(std::shared_ptr<Owner> owner, OperationCore core)
    : Held<OperationCore>(std::move(owner), std::move(core)) {
  const Plan& plan = operation().plan();
  // Where no rank has any data, the core cannot tell what memory it is; the arrays can.
  empty_on_gpu_ = operation().where() == Memory::host &&
                  std::any_of(this->core().arrays.begin(), this->core().arrays.end(),
                              [](const Array& array) { return array.where == Memory::device; });
  std::set<std::string> paths;
  for (const Command& command : plan.commands) paths.insert(plan.paths[static_cast<std::size_t>(command.path)]);
  text_ = fmt::format(" operation '{}'{}{}", plan.operation, paths.empty() ? "" : " by ", fmt::join(paths, ", "));
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
  if (stream.is_none() || core().idle || empty_on_gpu_) return;
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

On host memory any number may be active at once, and ranks may start and wait for them in different orders. While a wait
goes on, other Python threads run, and Ctrl-C ends it: the operation is then still active and may be waited for again.

On GPU memory an epoch is work of a stream, in its order; the host does not wait (`tasuki.synchronize` does), and graph
captures of the stream take it in. Ranks start operations that share a stream in the same order; TASUKI_CHECK=1 finds
those that do not. docs/gpus.md says what holds for several streams. `stream` is a stream of CuPy or PyTorch, an object with `__cuda_stream__`, or an
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
On GPUs: returns at once; what has arrived may be read by work that follows in the stream. An exchange that fails there is
raised by `tasuki.synchronize`, the next `start`, `run` or `wait`, and `free`; not by what other libraries wait with.)")
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
do without group barriers where they can: `device_group` says whether, and docs/kernels.md what the kernel must do.
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
          "How the group of the newest handle runs the operation: whether it has group barriers, and why. '' without "
          "one.")
      .def("free", &PyOperation::free,
           "Gives everything back. Local. Raises if the operation is active; on GPUs also, when all is given back, if "
           "an "
           "exchange has failed and nobody has been told.")
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
}

}  // namespace tasuki::python
