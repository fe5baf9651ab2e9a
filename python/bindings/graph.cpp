// Fork and Graph for Python: a branch of a stream for other libraries to work in, and captured work that is replayed.
#include "tasuki/graph.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>

#include "module.hpp"
#include "stream.hpp"

namespace tasuki::python {
namespace {

/// What `Fork.branch` returns: enough for every library to take it as its own.
struct PyStream {
  Stream stream = nullptr;
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(stream); }
};

/// The graph, and the function whose variables hold what the graph uses.
struct PyGraph {
  nb::callable enqueue;
  std::optional<Graph> graph;
};

// Functions often belong to the very object that keeps their graph: Python's collector must see that.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PyGraph>(self)->enqueue.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyGraph>(self)->enqueue.reset();
  return 0;
}

void make_graph(PyGraph* self, nb::callable enqueue, nb::handle stream) {
  Graph graph(stream_or_current(stream, Library::none), [&] { enqueue(); });
  new (self) PyGraph{std::move(enqueue), std::move(graph)};
}

void launch(const PyGraph& self, nb::handle stream) {
  Stream into = stream_or_current(stream, Library::none);
  const nb::gil_scoped_release others_may_run;  // CUDA waits where a stream has no room for more
  self.graph->launch(into);
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<PyStream>(m, "Stream", R"(A stream of Tasuki's, for other libraries to put work into.

It is cupy.cuda.Stream.from_external(stream) (before CuPy 14 cupy.cuda.ExternalStream(stream.ptr)) and
torch.cuda.ExternalStream(stream.ptr); whatever knows `__cuda_stream__` takes it as it is.)")
      .def_prop_ro("ptr", &PyStream::address, "Its address.")
      .def(
          "__cuda_stream__", [](const PyStream& s) { return nb::make_tuple(0, s.address()); },
          nb::sig("def __cuda_stream__(self) -> tuple[int, int]"))
      .def("__repr__", [](const PyStream& s) { return fmt::format("<tasuki.Stream {:#x}>", s.address()); });

  nb::class_<Fork>(m, "Fork", R"(A second stream on the current GPU, for what is to go ahead while the first computes.

`halo.overlap()` puts the exchange there. With a Fork of your own, the cells that the neighbours need go ahead as well:

    ahead = fork.branch(stream)
    with cupy.cuda.Stream.from_external(ahead):
        ...                         # kernels for the sides
    halo.run(ahead)
    ...                             # kernels for the interior, in `stream`
    fork.join(stream)

All is local, ordered on the GPU without waiting on the host, and may be captured (`Graph`).)")
      .def(nb::init<>(), "Raises tasuki.Error where there is no GPU.")
      .def(
          "branch",
          [](Fork& fork, nb::handle stream) { return PyStream{fork.branch(stream_or_current(stream, Library::none))}; },
          nb::arg("stream") = nb::none(), nb::keep_alive<0, 1>(),
          nb::sig("def branch(self, stream: Any = None) -> Stream"),
          R"(The second stream, the same every time; what comes in it comes after the work that `stream` has so far.

stream: as for `Operation.start`; None: the current one of CuPy or PyTorch if the process uses exactly one of them, else
the legacy default stream.)")
      .def(
          "join", [](Fork& fork, nb::handle stream) { fork.join(stream_or_current(stream, Library::none)); },
          nb::arg("stream") = nb::none(), nb::sig("def join(self, stream: Any = None) -> None"),
          "Later work of `stream` comes after the second stream's.");

  static PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};
  nb::class_<PyGraph>(m, "Graph", nb::type_slots(slots),
                      R"(Work of a stream, captured once and launched often as a whole.

Unlike CuPy's graphs it keeps the priorities of streams: the exchange in `overlap` or in a `Fork` goes
ahead of the interior in it as it does without, which hides it. It keeps `enqueue` alive; operations, fields and arrays
that the work uses must not be freed while it is replayed.)")
      .def("__init__", make_graph, nb::arg("enqueue"), nb::arg("stream") = nb::none(),
           nb::sig("def __init__(self, enqueue: Callable[[], object], stream: Any = None) -> None"),
           R"(Captures what `enqueue()` puts into `stream` and its branches; nothing of it runs before `launch`. Local.

stream: as for `Operation.start`, but any other than the default stream, which CUDA cannot capture. Other libraries must
work in it: make it their current one.

Exchanges are as always, and each launch is an epoch more. What the host does in `enqueue` is not done again at launches,
so enqueue an even number of iterations of fields with two copies. Calls that wait (`synchronize`, `download`), allocate
GPU memory or compile and load a kernel cannot be captured: run an iteration first.

An exception of `enqueue` ends the capture and is passed on; what was enqueued will not run, while swaps stay done.
Raises tasuki.Error where there is no GPU, for the default stream, and if something could not be captured.)")
      .def("launch", launch, nb::arg("stream") = nb::none(), nb::sig("def launch(self, stream: Any = None) -> None"),
           R"(Puts the work into `stream` and returns. Local. It need not be the stream of the capture, on the same GPU.

stream: as for `Fork.branch`. If an exchange in it fails, `tasuki.synchronize` raises.)");
}

}  // namespace tasuki::python
