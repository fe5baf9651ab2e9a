// Communication that kernels start: what Python passes to a kernel by value, and kernels that are running. Kernels are
// compiled and launched by CuPy: tasuki/kernels.py.
#include "kernel.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <optional>

#include "arguments.hpp"
#include "device_array.hpp"
#include "module.hpp"
#include "stream.hpp"
#include "tasuki/error.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki::python {
namespace {

/// A small plain value that a kernel takes, and what must live as long as a kernel has it.
struct KernelArgument {
  std::string kind;   // its type in a kernel
  std::string of;     // for people
  nb::object keeper;  // the Python object that it came from
  std::string bytes;
  std::shared_ptr<Owner> owner;
  std::uint32_t number = 0;  // by which launches know it; 0: none
  int blocks = 1;            // for which it is made
  int threads = 1;

  /// Throws `Error` if what it refers to has been freed.
  void check() const {
    if (number != 0) detail::check_number(owner->context(), "KernelArgument", number, blocks, threads);
  }
};

template <class T>
std::string bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* const argument = nb::inst_ptr<KernelArgument>(self);
  try {
    argument->check();
  } catch (const Error& error) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
  return PyBuffer_FillInfo(view, self, argument->bytes.data(), static_cast<Py_ssize_t>(argument->bytes.size()), 1,
                           flags);
}

// An array of one element: that is how CuPy takes a struct by value.
nb::object value(nb::handle self) {
  const auto& argument = inside<KernelArgument>(self);
  argument.check();
  const nb::module_ numpy = nb::module_::import_("numpy");
  return numpy.attr("frombuffer")(self, numpy.attr("dtype")(fmt::format("V{}", argument.bytes.size())));
}

/// Memory of every rank that the others put into, and what goes with it.
struct TeamCore {
  std::optional<KernelTeam> team;
  std::optional<Messages> messages;  // has a team of its own
  const KernelTeam& used() const { return messages ? messages->team() : *team; }
  std::byte* window() const { return used().window(); }
};

class PyTeam : public Held<TeamCore> {
 public:
  PyTeam(std::shared_ptr<Owner> owner, TeamCore core, std::int64_t window)
      : Held<TeamCore>(std::move(owner), std::move(core)), window_bytes_(window) {}
  std::int64_t window_bytes() const { return window_bytes_; }

 private:
  std::int64_t window_bytes_;
};
class PyKernelTeam : public PyTeam {
  using PyTeam::PyTeam;
};
class PyMessages : public PyTeam {
  using PyTeam::PyTeam;
};
class PyMessageLayout : public Held<MessageLayout> {
  using Held<MessageLayout>::Held;
};
class PyBlockNeighbours : public Held<BlockNeighbours> {
  using Held<BlockNeighbours>::Held;
};

// A list for each block. `read(entry, value)`: whether an entry is one, and what it is. `must`: what the argument must
// be. Errors begin with `call`.
template <class T, class Read>
std::vector<std::vector<T>> by_block(nb::handle given, const std::string& call, const char* argument, const char* must,
                                     const Read& read) {
  std::vector<std::vector<T>> lists;
  const auto wrong = [&](nb::handle value, const std::string& where) {
    throw Error(fmt::format("{}argument '{}'{} is {}; it must be {}", call, argument, where, shown(value), must));
  };
  std::vector<nb::object> blocks;
  if (!nb::try_cast(nb::borrow(given), blocks)) wrong(given, "");
  for (const nb::object& block : blocks) {
    std::vector<nb::object> entries;
    const std::string where = fmt::format("[{}]", lists.size());
    if (!nb::try_cast(block, entries)) wrong(block, where);
    std::vector<T>& list = lists.emplace_back();
    for (const nb::object& entry : entries)
      if (!read(entry, list.emplace_back())) wrong(block, where);
  }
  return lists;
}
std::vector<std::vector<int>> lists_from(const Context& context, nb::handle of) {
  return by_block<int>(of, fmt::format("rank {}: BlockNeighbours: ", context.rank()), "of",
                       "a list for each block, of the numbers of other blocks",
                       [](nb::handle entry, int& number) { return as_integer(entry, number); });
}
std::vector<std::vector<Box>> boxes_from(nb::handle cells) {
  return by_block<Box>(
      cells, "", "cells",
      "a list for each block, of boxes: tuples of slices of global indices, with a beginning and an end",
      [](nb::handle entry, Box& box) { return box_from(entry, box); });
}

nb::object window(const PyTeam& team) {
  const TeamCore& core = team.core();
  // The array keeps the team: a copy of the core's handle.
  auto block = std::make_unique<MemoryBlock>(team.shared_owner(), std::make_shared<KernelTeam>(core.used()),
                                             core.window(), team.window_bytes(), "window of a team of kernels", 0);
  const nb::object kept = nb::cast(block.release(), nb::rv_policy::take_ownership);
  const nb::object dtype = nb::module_::import_("numpy").attr("dtype")("u1");
  if (core.used().memory() == Memory::host)
    return numpy_array(kept, dtype, nb::make_tuple(team.window_bytes()), nb::none());
  const int gpu = use_gpu(team.owner().context());
  return nb::cast(DeviceArray{kept, dtype, core.window(), {team.window_bytes()}, {1}, gpu, Library::none});
}

KernelArgument argument_of(nb::handle self, const std::shared_ptr<Owner>& owner, const char* kind, const char* of,
                           std::string bytes) {
  return {kind, of, nb::borrow(self), std::move(bytes), owner};
}

/// A kernel that is running, and what it uses.
struct ResidentCore {
  std::vector<nb::object> keep;
  std::optional<Resident> resident;  // goes first: it waits. Nothing once it has been waited for
};

class PyResident : public Held<ResidentCore> {
 public:
  using Held<ResidentCore>::Held;
  void wait() const {
    ResidentCore& core = this->core();
    if (!core.resident) return;
    const auto let_go = [&core] {
      core.resident.reset();  // while the stream is there
      core.keep.clear();
    };
    try {
      core.resident->wait();
    } catch (const Interruption&) {
      throw;  // it goes on running
    } catch (...) {
      let_go();
      throw;
    }
    let_go();
  }
  std::string in_use() const override {
    return !core().resident ? "" : "a kernel that communicates may still be running; wait for it first";
  }
};

std::vector<const KernelArgument*> among(nb::handle arguments) {
  std::vector<const KernelArgument*> found;
  for (const nb::handle argument : arguments)
    if (nb::isinstance<KernelArgument>(argument)) found.push_back(&inside<KernelArgument>(argument));
  return found;
}

ResidentOptions options_of(int blocks, int threads, std::int64_t shared_bytes, nb::handle stream) {
  ResidentOptions options;
  options.blocks = blocks;
  options.threads = threads;
  options.shared_bytes = shared_bytes;
  options.stream = stream_or_current(stream, Library::cupy);
  return options;
}

// All that can be said before the kernel is looked at. Returns the stream's address.
std::uintptr_t check_launch(const ContextHandle& context, nb::handle arguments, int blocks, int threads,
                            std::int64_t shared_bytes, nb::handle stream) {
  const Context& core = context.owner->context();
  if (uses_gpu(core)) select_gpu(use_gpu(core));
  const ResidentOptions options =
      options_of(blocks, threads, shared_bytes, uses_gpu(core) ? nb::borrow(stream) : nb::object(nb::int_(0)));
  detail::check_gpu_launch(core, options);
  for (const KernelArgument* argument : among(arguments)) {
    if (argument->owner != context.owner)
      throw Error(fmt::format("rank {}: launch_resident: an argument ({} of {}) belongs to another context",
                              core.rank(), argument->kind, argument->of));
    if (argument->number != 0) detail::check_number(core, "launch_resident", argument->number, blocks, threads);
  }
  return reinterpret_cast<std::uintptr_t>(options.stream);
}

detail::KernelFacts facts_from(const nb::dict& given) {
  const auto number = [&](const char* name) { return nb::cast<std::int64_t>(given[name]); };
  const auto small = [&](const char* name) { return static_cast<int>(number(name)); };
  detail::KernelFacts facts;
  facts.gpu = small("gpu");
  facts.gpu_name = nb::cast<std::string>(given["gpu_name"]);
  facts.multiprocessors = small("multiprocessors");
  facts.blocks = small("blocks");
  facts.threads = small("threads");
  facts.registers = small("registers");
  facts.shared = number("shared");
  facts.shared_of_block = number("shared_of_block");
  facts.block_threads = small("block_threads");
  facts.thread_registers = small("thread_registers");
  facts.block_shared = number("block_shared");
  return facts;
}

// `blocks_at_once`: says how many fit on a multiprocessor; called if such blocks can be.
void check_fits(const ContextHandle& context, int blocks, int threads, std::int64_t shared_bytes, const nb::dict& facts,
                const nb::callable& blocks_at_once) {
  const Context& core = context.owner->context();
  const ResidentOptions options = options_of(blocks, threads, shared_bytes, nb::int_(0));
  const detail::KernelFacts known = facts_from(facts);
  detail::check_block(core, options, known);
  detail::check_room(core, options, known, nb::cast<int>(blocks_at_once()));
}

nb::object watch(const ContextHandle& context, nb::handle keep, std::uintptr_t stream) {
  ResidentCore core;
  for (const nb::handle object : keep) core.keep.push_back(nb::borrow(object));
  core.resident.emplace(
      detail::watch_gpu_launch(context.owner->context(), stream_or_current(nb::int_(stream), Library::none)));
  auto resident = std::make_unique<PyResident>(context.owner, std::move(core));
  return nb::cast(resident.release(), nb::rv_policy::take_ownership);
}

KernelTeamOptions team_options(std::int64_t window, int signals, int words, int barriers, int packets,
                               std::int64_t packet, int exchanges, int exchange_words) {
  KernelTeamOptions options;
  options.window = window;
  options.signals = signals;
  options.words = words;
  options.barriers = barriers;
  options.packets = packets;
  options.packet = packet;
  options.exchanges = exchanges;
  options.exchange_words = exchange_words;
  return options;
}

void make_team(PyKernelTeam* self, const ContextHandle& context, std::int64_t window, int signals, int words,
               int barriers, int packets, std::int64_t packet, int exchanges, int exchange_words) {
  TeamCore core;
  core.team.emplace(context.owner->context(),
                    team_options(window, signals, words, barriers, packets, packet, exchanges, exchange_words));
  new (self) PyKernelTeam(context.owner, std::move(core), window);
}

void make_messages(PyMessages* self, const ContextHandle& context, int depth, int receives, std::int64_t eager,
                   std::int64_t largest, Truth concurrent, const std::string& path, int by_host, std::int64_t staging,
                   Truth any_source, std::int64_t window, int signals, int words, int barriers, int packets,
                   std::int64_t packet, int exchanges, int exchange_words) {
  MessagesOptions options;
  options.team = team_options(window, signals, words, barriers, packets, packet, exchanges, exchange_words);
  options.depth = depth;
  options.receives = receives;
  options.eager = eager;
  options.largest = largest;
  options.concurrent = concurrent;
  options.path = path;
  options.by_host = by_host;
  options.staging = staging;
  options.any_source = any_source;
  TeamCore core;
  core.messages.emplace(context.owner->context(), options);
  new (self) PyMessages(context.owner, std::move(core), window);
}

}  // namespace

nb::object handle_of(nb::handle self, bool reduces, int blocks, int threads, int cpu_threads, nb::handle cells) {
  const auto& operation = inside<PyOperation>(self);
  operation.check_unmoved();
  KernelGroup group;
  group.blocks = blocks;
  group.threads = threads;
  group.cpu_threads = cpu_threads;
  if (!cells.is_none()) {
    try {
      group.cells = boxes_from(cells);
      if (group.cells.empty()) throw Error("argument 'cells' is empty; it must have a list for each block, or be None");
    } catch (...) {
      // The other ranks compare their cells in `device`, by this name.
      operation.shared_owner()->agree(operation.operation().plan().operation + ": device with argument 'cells'",
                                      [error = std::current_exception()] { std::rethrow_exception(error); });
      throw;
    }
  }
  KernelArgument argument = argument_of(self, operation.shared_owner(), reduces ? "ReducingHandle" : "Handle", "", "");
  const auto fill = [&](const auto& handle) {
    argument.bytes = bytes_of(handle);
    argument.number = handle.heading.number;
    argument.blocks = handle.blocks;
    argument.threads = handle.threads;
  };
  Operation core = operation.operation();
  if (reduces) {
    fill(core.device_reducing(group));
  } else {
    fill(core.device(group));
  }
  argument.of = core.plan().operation;
  return nb::cast(std::move(argument));
}

void bind_kernel(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
  nb::class_<KernelArgument>(
      m, "KernelArgument", nb::type_slots(slots),
      R"(What a kernel takes by value: a handle of an operation, a team, messages, a shape, neighbours.

`launch_resident` takes it among the arguments as it is. It keeps alive what it came from. One whose operation was freed,
or which has a newer handle for another group, is refused.)")
      .def_prop_ro(
          "kind", [](const KernelArgument& a) { return a.kind; },
          "Its type in a kernel, in namespace tasuki::device: 'Handle', 'ReducingHandle', 'Team', 'Messages', 'Shape', "
          "'Neighbours'.")
      .def_prop_ro(
          "nbytes", [](const KernelArgument& a) { return a.bytes.size(); }, "Its size in a kernel.")
      .def_prop_ro("value", value, nb::sig("def value(self) -> NDArray[Any]"),
                   R"(Its bytes, as an array of one element, which CuPy's kernels take as a struct by value.

For launches by other means than `launch_resident`, which then checks nothing. Raises tasuki.Error if it is of no use any
more.)")
      .def("__repr__",
           [](const KernelArgument& a) { return fmt::format("<tasuki.KernelArgument {} of {}>", a.kind, a.of); });

  const auto bind_team = [](auto& type, const char* kind, auto device) {
    using Team = typename std::decay_t<decltype(type)>::Type;
    type.def(
            "device",
            [kind, device](nb::handle self) {
              const auto& team = inside<Team>(self);
              return argument_of(self, team.shared_owner(), kind, "ranks", bytes_of(device(team.core())));
            },
            R"(What is passed to kernels: `tasuki::device::Team` of a KernelTeam, `tasuki::device::Messages` of Messages.

Waits of a kernel that has it end after nine tenths of the context's deadline as it is now. Local. Raises tasuki.Error if
a kernel has failed.)")
        .def_prop_ro(
            "window", [](const Team& team) { return window(team); },
            nb::sig("def window(self) -> NDArray[Any] | DeviceArray"),
            "This rank's window as bytes, zeros in the beginning: on the GPU a DeviceArray, else of NumPy.")
        .def(
            "check", [](const Team& team) { team.core().used().check(); },
            "Raises tasuki.Error if a kernel has failed on this rank. Local.");
  };

  auto team =
      nb::class_<PyKernelTeam>(m, "KernelTeam", R"(The ranks of a context whose kernels put into each other's memory.

For `put`, `signal`, `barrier` and the other primitives of docs/kernels.md. The memory is on the GPUs if the context uses
them, before (`use_gpu`).)");
  team.def(
      "__init__", make_team, nb::arg("context"), nb::kw_only(), nb::arg("window") = 0, nb::arg("signals") = 64,
      nb::arg("words") = 64, nb::arg("barriers") = 4, nb::arg("packets") = 0, nb::arg("packet") = 4096,
      nb::arg("exchanges") = 1, nb::arg("exchange_words") = 32,
      nb::sig(
          "def __init__(self, context: Context, *, window: SupportsIndex = 0, signals: SupportsIndex = 64, "
          "words: SupportsIndex = 64, barriers: SupportsIndex = 4, packets: SupportsIndex = 0, "
          "packet: SupportsIndex = 4096, exchanges: SupportsIndex = 1, exchange_words: SupportsIndex = 32) -> None"),
      R"(Collective, with the same arguments on all ranks.

window: bytes on each rank that the others put into.
signals, words, packets: that a rank has for each other; packet: bytes of one.
barriers, exchanges: that may be used at the same time; exchange_words: of a rank for each other.
Raises tasuki.Error on all ranks if arguments differ or cannot be, or if a rank cannot store into another's memory.)");
  bind_team(team, "Team", [](const TeamCore& core) { return core.team->device(); });

  auto messages = nb::class_<PyMessages>(m, "Messages", R"(Messages with tags between kernels: isend, irecv, wait, test.

With a team of its own, for the primitives. Messages to ranks out of reach go through the host and MPI.)");
  messages.def(
      "__init__", make_messages, nb::arg("context"), nb::kw_only(), nb::arg("depth") = 16, nb::arg("receives") = 64,
      nb::arg("eager") = 1024, nb::arg("largest") = 1 << 16, nb::arg("concurrent") = true, nb::arg("path") = "auto",
      nb::arg("by_host") = 64, nb::arg("staging") = 1 << 20, nb::arg("any_source") = false, nb::arg("window") = 0,
      nb::arg("signals") = 64, nb::arg("words") = 64, nb::arg("barriers") = 4, nb::arg("packets") = 0,
      nb::arg("packet") = 4096, nb::arg("exchanges") = 1, nb::arg("exchange_words") = 32,
      nb::sig("def __init__(self, context: Context, *, depth: SupportsIndex = 16, receives: SupportsIndex = 64, "
              "eager: SupportsIndex = 1024, largest: SupportsIndex = 65536, concurrent: Truth = True, "
              "path: str = 'auto', by_host: SupportsIndex = 64, staging: SupportsIndex = 1048576, any_source: Truth = "
              "False, "
              "window: SupportsIndex = 0, "
              "signals: SupportsIndex = 64, words: SupportsIndex = 64, barriers: SupportsIndex = 4, "
              "packets: SupportsIndex = 0, packet: SupportsIndex = 4096, exchanges: SupportsIndex = 1, "
              "exchange_words: SupportsIndex = 32) -> None"),
      R"(Collective, with the same arguments on all ranks.

depth: messages to one rank that never wait for their receiver.
receives: that may be open for one sender.
eager: bytes of a message that is stored at once into its place at the receiver.
largest: bytes of a message from outside the window.
concurrent: several groups of a rank may make calls at the same time; without, calls are quicker.
path: 'auto', or 'mpi': through the host to all others.
by_host: messages through the host that may be under way on a rank.
staging: pinned bytes of each of these; larger messages go in slices.
any_source: receives may be from any other rank, `kAnyRank`; all messages to others then go through the host.
The others are those of `KernelTeam`. Raises tasuki.Error on all ranks if arguments differ or cannot be.)");
  bind_team(messages, "Messages", [](const TeamCore& core) { return core.messages->device(); });

  nb::class_<PyMessageLayout>(m, "MessageLayout",
                              "A Layout as kernels send and receive it, for any Messages of the context.")
      .def(
          "__init__",
          [](PyMessageLayout* self, const ContextHandle& context, const Layout& layout) {
            new (self) PyMessageLayout(context.owner, MessageLayout(context.owner->context(), layout));
          },
          nb::arg("context"), nb::arg("layout"), "Local. On the GPU if the context uses them.")
      .def(
          "device",
          [](nb::handle self) {
            const auto& layout = inside<PyMessageLayout>(self);
            return argument_of(self, layout.shared_owner(), "Shape", "a layout", bytes_of(layout.core().device()));
          },
          "What is passed to kernels: `tasuki::device::Shape`.");

  nb::class_<PyBlockNeighbours>(m, "BlockNeighbours",
                                R"(Which blocks of a launch wait for each other, step by step: for `device::Steps`.

It belongs to one launch at a time.)")
      .def(
          "__init__",
          [](PyBlockNeighbours* self, const ContextHandle& context, nb::handle of) {
            const Context& core = context.owner->context();
            new (self) PyBlockNeighbours(context.owner, BlockNeighbours(core, lists_from(core, of)));
          },
          nb::arg("context"), nb::arg("of"),
          nb::sig("def __init__(self, context: Context, of: Sequence[Sequence[SupportsIndex]]) -> None"),
          R"(Local. On the GPU if the context uses them.

of: for each block of the launch the numbers of its neighbours, of which there may be none.
Raises tasuki.Error if a block names itself, one that is not there or one twice, or one that does not name it.)")
      .def(
          "device",
          [](nb::handle self) {
            const auto& neighbours = inside<PyBlockNeighbours>(self);
            const device::Neighbours value = neighbours.core().device();
            KernelArgument argument =
                argument_of(self, neighbours.shared_owner(), "Neighbours", "blocks", bytes_of(value));
            argument.number = value.number;
            argument.blocks = value.blocks;
            return argument;
          },
          "What is passed to kernels, launched with as many blocks: `tasuki::device::Neighbours`.");

  nb::class_<PyResident>(m, "Resident", R"(A kernel that is running: what `launch_resident` returns.

It keeps the kernel's arguments alive until it has ended; dropping it waits for that.)")
      .def("wait", &PyResident::wait, R"(Returns when the kernel has ended. Local; other Python threads run meanwhile.

However long that takes: the context's deadline is for each wait in the kernel, not for the kernel. Raises tasuki.Error if
a call in it has failed, and if a rank has died or given up (the kernel's waits are ended then). Ctrl-C ends the wait, not
the kernel.)");
  m.def("_check_launch", check_launch, nb::arg("context"), nb::arg("arguments"), nb::arg("blocks"), nb::arg("threads"),
        nb::arg("shared_bytes"), nb::arg("stream").none());
  m.def("_check_fits", check_fits);
  m.def("_watch_launch", watch);
}

}  // namespace tasuki::python
