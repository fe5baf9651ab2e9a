// Planning off line: machines as data, and the plans of all their ranks. What people call is in offline.py and
// machine_files.py, which check names and give these functions whole lists of arguments.
#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "arguments.hpp"
#include "collective_arguments.hpp"
#include "exchange.hpp"
#include "memory.hpp"
#include "module.hpp"
#include "owner.hpp"
#include "tasuki/distribution.hpp"
#include "tasuki/error.hpp"
#include "tasuki/operation.hpp"
#include "tasuki/planning.hpp"

namespace tasuki::python {
namespace {

Memory memory_from(const std::string& name) {
  if (name == "host") return Memory::host;
  if (name == "device") return Memory::device;
  throw Error(fmt::format("argument 'memory' is '{}'; it must be 'host' or 'device'", name));
}

/// A field that is planned, with its widths as they were given: how many dimensions there are is known later.
struct PyFieldShape {
  FieldShape field;
  nb::object shadow;
  nb::object width;

  FieldShape in(int ndims) const {
    FieldShape whole = field;
    // A width alone means a shadow that is as wide; a shadow alone takes part as a whole; without either it is 1.
    const nb::object one = nb::int_(1);
    whole.shadow = width_from(shadow.is_none() ? (width.is_none() ? one : width) : shadow, ndims, "shadow");
    whole.width = width.is_none() ? whole.shadow : width_from(width, ndims, "width");
    return whole;
  }
};

void make_field_shape(PyFieldShape* self, const std::string& name, nb::handle dtype, nb::handle shadow,
                      nb::handle width, int copies, std::int64_t pad, const std::string& memory, Truth shared) {
  FieldShape field;
  const nb::object type = dtype_from(dtype.is_none() ? nb::str("float64") : nb::borrow(dtype), "dtype");
  field.name = name;
  field.element_bytes = element_bytes(type);
  field.dtype = number_type(type);
  field.copies = copies;
  field.pad = pad;
  field.memory = memory_from(memory);
  field.shared = shared;
  new (self) PyFieldShape{field, nb::borrow(shadow), nb::borrow(width)};
}

Planned plan_halo(const Machine& machine, const std::vector<std::int64_t>& extents,
                  const std::vector<nb::object>& fields, const std::optional<std::vector<int>>& split,
                  const std::variant<Truth, std::vector<Truth>>& periodic, const Cuts& cuts, Truth reorder,
                  const Mapping& mapping, Truth corners, Truth reverse, Truth alternating, const std::string& edges,
                  const std::string& path) {
  HaloShape halo;
  halo.extents = extents;
  if (split) halo.grid.split = *split;
  if (const Truth* all = std::get_if<Truth>(&periodic)) {
    halo.grid.periodic.assign(extents.size(), *all);
  } else {
    const auto& each = std::get<1>(periodic);
    halo.grid.periodic.assign(each.begin(), each.end());
  }
  halo.grid.cuts = lists_of(cuts);
  halo.grid.reorder = reorder;
  map_boxes(halo.grid, mapping);
  for (const nb::object& field : fields) {
    if (!nb::isinstance<PyFieldShape>(field))
      throw Error(fmt::format("argument 'fields' has the entry {}; it must be a name or a FieldShape", shown(field)));
    halo.fields.push_back(inside<PyFieldShape>(field).in(static_cast<int>(extents.size())));
  }
  halo.corners = corners;
  halo.reverse = reverse;
  halo.alternating = alternating;
  halo.edges = edges;
  halo.path = path;
  return plan(machine, halo);
}

std::pair<int, Layout> side(nb::handle value, const char* argument) {
  std::vector<nb::object> parts;
  int rank = 0;
  if (!nb::try_cast(value, parts) || parts.size() != 2 || !as_integer(parts[0], rank) ||
      !nb::isinstance<Layout>(parts[1]))
    throw Error(fmt::format("argument '{}' is {}; it must be (rank, Layout)", argument, shown(value)));
  return {rank, inside<Layout>(parts[1])};
}

Planned plan_transfer(const Machine& machine, nb::handle source, nb::handle target, const std::string& memory,
                      Truth shared, const std::string& path) {
  TransferShape transfer;
  std::tie(transfer.from, transfer.src) = side(source, "source");
  std::tie(transfer.to, transfer.dst) = side(target, "target");
  transfer.memory = memory_from(memory);
  transfer.shared = shared;
  transfer.path = path;
  return with_names({{"from", "source"}, {"to", "target"}}, [&] { return plan(machine, transfer); });
}

/// The type of a collective's elements. NumPy by itself has no bfloat16, which planning does not need.
DType planned_type(nb::handle dtype, ReduceOp op) {
  if (nb::isinstance<nb::str>(dtype) && nb::cast<std::string>(dtype) == "bfloat16") return DType::bf16;
  return combined_type(dtype_from(nb::borrow(dtype), "dtype"), op);
}

Planned plan_collective(const Machine& machine, const std::string& kind, int root, std::int64_t count,
                        const std::vector<std::int64_t>& counts, nb::handle dtype, const std::string& op, Truth ordered,
                        Truth in_place, const std::string& algorithm, int trees, int arity, std::int64_t chunk,
                        const std::string& memory, Truth shared, const std::string& path) {
  CollectiveShape shape;
  shape.kind = collective_from_string(kind);
  shape.root = root;
  shape.count = count;
  shape.counts = counts;
  shape.op = reduce_op_from_string(op);
  shape.type = planned_type(dtype, shape.op);
  shape.ordered = ordered;
  shape.in_place = in_place;
  shape.algorithm = algorithm;
  shape.trees = trees;
  shape.arity = arity;
  shape.chunk = chunk;
  shape.memory = memory_from(memory);
  shape.shared = shared;
  shape.path = path;
  return plan(machine, shape);
}

Planned plan_named(const Machine& machine, const std::string& operation,
                   const std::map<std::string, std::int64_t>& integers, const std::map<std::string, nb::object>& types,
                   const std::string& memory, Truth shared, const std::string& path) {
  NamedShape shape{operation, integers, memory_from(memory), shared, path};
  for (const auto& [name, type] : types)
    shape.arguments[name] = static_cast<std::int64_t>(planned_type(type, ReduceOp::max));
  return plan(machine, shape);
}

using Ends = std::pair<std::vector<int>, std::vector<int>>;

Planned plan_neighbours(const Machine& machine, const std::string& kind, std::int64_t count, nb::handle dtype,
                        const std::vector<int>& split, const std::variant<Truth, std::vector<Truth>>& periodic,
                        const std::optional<std::vector<Ends>>& neighbours, const std::string& memory, Truth shared,
                        const std::string& path) {
  if (kind != "alltoall" && kind != "allgather")
    throw Error(fmt::format("argument 'kind' is '{}'; it must be 'alltoall' or 'allgather'", kind));
  const bool allgather = kind == "allgather";
  if (count < 0) throw Error(fmt::format("argument 'count' is {}; it must not be negative", count));
  const std::int64_t bytes = count * size_of(planned_type(dtype, ReduceOp::sum));
  NeighbourShape shape;
  if (neighbours) {
    shape = NeighbourShape::among(*neighbours, bytes, allgather);
  } else {
    std::vector<bool> wraps(split.size());
    const Truth* const all = std::get_if<Truth>(&periodic);
    if (all != nullptr) wraps.assign(split.size(), *all);
    if (all == nullptr) wraps.assign(std::get<1>(periodic).begin(), std::get<1>(periodic).end());
    shape = NeighbourShape::on_grid(machine, split, wraps, bytes, allgather);
  }
  shape.memory = memory_from(memory);
  shape.shared = shared;
  shape.path = path;
  return plan(machine, shape);
}

// A field: name, type, numbers of a cell, whether its levels come first, cells of each rank or -1.
using PlannedCells = std::tuple<std::string, nb::object, std::int64_t, bool, std::int64_t>;

Planned plan_exchange(const Machine& machine, const std::vector<PlannedCells>& fields,
                      const std::vector<nb::object>& entries, Truth reverse, const std::string& op,
                      const std::string& memory, Truth shared, const std::string& path) {
  ExchangeShape shape;
  for (const auto& [name, dtype, numbers, levels_first, cells] : fields) {
    const DType type = planned_type(dtype, ReduceOp::max);
    if (levels_first && cells < 0)
      throw Error(fmt::format("field {}: where levels come first, 'cells' says how far they are apart; give it", name));
    shape.fields.push_back(levels_first ? Cells::levels_first(type, cells, numbers, name)
                                        : Cells::of(type, cells, numbers, name));
  }
  for (const nb::object& one : entries) shape.entries.push_back(entries_from(one, {}));
  shape.reverse = reverse;
  shape.op = reduce_op_from_string(op);
  shape.memory = memory_from(memory);
  shape.shared = shared;
  shape.path = path;
  return plan(machine, shape);
}

Planned plan_redistribute(const Machine& machine, const ArrayDistribution& source, const ArrayDistribution& target,
                          const std::vector<int>& axes, const std::vector<std::pair<std::string, nb::object>>& arrays,
                          const std::string& memory, Truth shared, const std::string& path, std::int64_t scratch) {
  return with_names({{"from", "source"}, {"to", "target"}}, [&] {
    RedistributeShape shape{{source}, {target}, axes, {}};
    for (const auto& [name, dtype] : arrays) shape.arrays.push_back({name, element_bytes(dtype_from(dtype, "dtype"))});
    shape.memory = memory_from(memory);
    shape.shared = shared;
    shape.path = path;
    shape.scratch = scratch;
    return plan(machine, shape);
  });
}

nb::object network(const Network& network) {
  if (network.kind == Network::Kind::none) return nb::none();
  nb::dict fields;
  fields["kind"] = network.kind == Network::Kind::torus ? "torus" : "switch";
  if (network.kind == Network::Kind::torus) fields["extents"] = nb::tuple(nb::cast(network.extents));
  fields["rails"] = network.rails;
  fields["bandwidth"] = network.bandwidth;
  fields["latency"] = network.latency;
  return fields;
}

nb::dict prices(const Machine& machine) {
  nb::dict all;
  for (const auto& [path, cost] : machine.costs) {
    nb::dict one;
    for (const auto& [prefix, link] :
         {std::pair{"", &cost.one_way}, std::pair{"mutual_", &cost.mutual}, std::pair{"own_", &cost.own_one_way},
          std::pair{"own_mutual_", &cost.own_mutual}}) {
      const std::string p = prefix;
      if (p.starts_with("own_") && !cost.own) continue;
      for (const SizedBandwidth& sized : link->by_size)
        one[nb::str((p + "bandwidth_of_" + std::to_string(sized.bytes)).c_str())] = sized.bandwidth;
      one[nb::str((p + "latency").c_str())] = link->latency;
      one[nb::str((p + "bandwidth").c_str())] = link->bandwidth;
      one[nb::str((p + "bulk_bandwidth").c_str())] = link->bulk_bandwidth;
      one[nb::str((p + "per_run").c_str())] = link->per_run;
    }
    for (const auto& [prefix, reuse] : {std::pair{"", &cost.reuse}, std::pair{"own_", &cost.own_reuse}})
      for (const SizedReuse& sized : *reuse)
        one[nb::str((std::string(prefix) + "reuse_of_" + std::to_string(sized.bytes)).c_str())] = sized.seconds;
    one["bulk_from"] = cost.bulk_from;
    all[nb::str(path.c_str())] = one;
  }
  return all;
}

nb::tuple rank_list(const Machine& machine) {
  nb::list ranks;
  for (const auto& rank : machine.ranks) ranks.append(nb::make_tuple(rank.host, rank.island, rank.gpus));
  return nb::tuple(ranks);
}

// Of a value that is given as `file`, a name or a path: what it says, and what messages call it.
Machine machine_from_file(nb::handle file) {
  const nb::object read = nb::module_::import_("tasuki.machine_files").attr("read")(file);
  const auto [text, name] = nb::cast<std::pair<std::string, std::string>>(read);
  return Machine::from_json(text, name);
}

void bind_machine(nb::module_& m) {
  nb::class_<Machine>(m, "Machine", R"(Ranks, hosts, islands, GPUs and what each path costs, as data (docs/machines.md).

Plans are made for it without its being there. Immutable; local.)")
      .def_static(
          "from_json", [](const std::string& text, const std::string& file) { return Machine::from_json(text, file); },
          nb::arg("text"), nb::arg("file") = "machine",
          "Raises tasuki.Error that names `file`, the place and the reason.")
      .def_static("from_file", machine_from_file, nb::arg("file"),
                  nb::sig("def from_file(file: str | PathLike[str]) -> Machine"),
                  "A machine file, or one that comes with Tasuki by its bare name: `from_file('torus-36')`.")
      .def_static("uniform", &Machine::uniform, nb::arg("ranks"), nb::arg("per_host"), nb::arg("per_island") = 0,
                  nb::arg("gpus") = false,
                  "Hosts of `per_host` ranks in islands of `per_island` (0: a host), with default prices. With `gpus`, "
                  "those of an island reach each other.")
      .def("to_json", &Machine::to_json, "`Machine.from_json(machine.to_json()) == machine`.")
      .def("resized", &Machine::resized, nb::arg("ranks"),
           "The same machine with so many ranks: its first ones, or more hosts like those that it has. Raises "
           "tasuki.Error where that cannot be.")
      .def_ro("name", &Machine::name)
      .def_ro("source", &Machine::source, "Where the prices are from.")
      .def_prop_ro("size", &Machine::size, "Ranks.")
      .def("__len__", &Machine::size)
      .def_prop_ro("ranks", rank_list, nb::sig("def ranks(self) -> tuple[tuple[int, int, int], ...]"),
                   "Of each rank (host, island, gpus): ranks of one `gpus` reach each other's; -1: it has none.")
      .def_ro("cores", &Machine::cores, "Of a host; 0: as many as ranks.")
      .def_ro("threads", &Machine::threads, "The ranks are threads of one process.")
      .def_prop_ro(
          "inside", [](const Machine& machine) { return network(machine.inside); },
          nb::sig("def inside(self) -> dict[str, Any] | None"), "The network of an island.")
      .def_prop_ro(
          "outside", [](const Machine& machine) { return network(machine.outside); },
          nb::sig("def outside(self) -> dict[str, Any] | None"), "The network between islands.")
      .def_prop_ro("paths", prices, nb::sig("def paths(self) -> dict[str, dict[str, float]]"),
                   "The prices by path, in seconds, bytes and bytes per second; a path without one is not in it.")
      .def_ro("unusable", &Machine::unusable, "By path: why it cannot be used.")
      .def_prop_ro(
          "constants", [](const Machine& machine) { return by_name(machine.constants); },
          "The numbers that planning uses besides prices, by name.")
      .def(nb::self == nb::self)
      .def("__repr__", [](const Machine& machine) {
        return fmt::format("<tasuki.Machine '{}' of {} ranks, {}>", machine.name, machine.size(), machine.source);
      });
  m.attr("Machine").attr("__hash__") = nb::none();  // as Python has it for what is equal by value
  m.def(
      "machine_of", [](const ContextHandle& context) { return machine_of(context.owner->context()); },
      nb::arg("context"),
      "The context's ranks as planning sees them, with measured prices. Plans made from it are those that operations "
      "of the context run. Collective.");
}

}  // namespace

void bind_offline(nb::module_& m) {
  bind_machine(m);
  nb::class_<PyFieldShape>(m, "FieldShape", "A field without memory, for `plan_halo`.")
      .def("__init__", make_field_shape, nb::arg("name"), nb::arg("dtype") = nb::none(), nb::kw_only(),
           nb::arg("shadow") = nb::none(), nb::arg("width") = nb::none(), nb::arg("copies") = 1, nb::arg("pad") = 0,
           nb::arg("memory") = "host", nb::arg("shared") = true,
           nb::sig("def __init__(self, name: str, dtype: DTypeLike | None = None, *, shadow: Width | None = None, "
                   "width: Width | None = None, copies: SupportsIndex = 1, pad: SupportsIndex = 0, "
                   "memory: Literal['host', 'device'] = 'host', shared: Truth = True) -> None"),
           R"(dtype: as for `Field`; None: float64.
shadow, width: cells around the box, and those of them that take part; what is left out is as the other, or 1.
copies, pad: as for `Field`. memory: 'host' or 'device'.
shared: memory that peers can map, such as Tasuki's own; False: the user's own.)")
      .def("__repr__",
           [](const PyFieldShape& shape) { return fmt::format("<tasuki.FieldShape '{}'>", shape.field.name); });
  nb::class_<Planned>(m, "Planned", "The plans of all ranks of a machine, made when they are asked for. Local.")
      .def_prop_ro("ranks", &Planned::ranks)
      .def("plan", &Planned::plan, nb::arg("rank"), "The plan of a rank.")
      .def("plans", &Planned::plans, "The plans of all ranks, in their order.")
      .def("explain", &Planned::explain, nb::arg("rank") = 0,
           "The table of `Operation.explain` for a rank: pieces, paths, predicted µs, why other paths were not taken.")
      .def("predict", &Planned::predict, "What an epoch is predicted to take on all ranks; makes the plans of all.")
      .def("advise", &Planned::advise, nb::arg("computation"),
           "Which engine pays beside a computation of so many seconds; on GPUs the copy engines are among them.")
      .def(
          "messages",
          [](const Planned& planned) {
            nb::list all;
            for (const Message& one : planned.messages())
              all.append(nb::make_tuple(one.label, one.from, one.to, one.bytes, one.path));
            return all;
          },
          nb::sig("def messages(self) -> list[tuple[str, int, int, int, str]]"),
          "What goes from rank to rank: label, sender, receiver, bytes and path of each.")
      .def(
          "passes",
          [](const Planned& planned, int rank) {
            std::vector<std::pair<std::string, Plan>> all;
            planned.passes(rank, [&](const std::string& pass, const Plan& plan) { all.emplace_back(pass, plan); });
            nb::list found;
            for (const auto& [pass, plan] : all) found.append(nb::make_tuple(pass, plan));
            return found;
          },
          nb::arg("rank") = 0, nb::sig("def passes(self, rank: SupportsIndex = 0) -> list[tuple[str, Plan]]"),
          "A rank's plan as it was emitted and after every pass, with the pass's name.")
      .def(
          "verify", [](const Planned& planned, int epochs) { return verify(planned.plans(), epochs); },
          nb::arg("epochs") = 0, "Checks the plans of all ranks together; see `verify`.")
      .def("__len__", &Planned::ranks)
      .def("__repr__",
           [](const Planned& planned) { return fmt::format("<tasuki.Planned for {} ranks>", planned.ranks()); });
  m.def("_plan_halo", plan_halo, nb::arg("machine"), nb::arg("extents"), nb::arg("fields"), nb::arg("split").none(),
        nb::arg("periodic"), nb::arg("cuts").none(), nb::arg("reorder"), nb::arg("mapping").none(), nb::arg("corners"),
        nb::arg("reverse"), nb::arg("alternating"), nb::arg("edges"), nb::arg("path"),
        nb::sig("def _plan_halo(machine: Machine, extents: Any, fields: Any, split: Any, periodic: Any, cuts: Any, "
                "reorder: Any, mapping: Any, corners: Any, reverse: Any, alternating: Any, edges: str, path: str) -> "
                "Planned"));
  m.def("_plan_transfer", plan_transfer, nb::arg("machine"), nb::arg("source"), nb::arg("target"), nb::arg("memory"),
        nb::arg("shared"), nb::arg("path"),
        nb::sig("def _plan_transfer(machine: Machine, source: Any, target: Any, memory: str, shared: Any, path: str) "
                "-> Planned"));
  m.def("_plan_collective", plan_collective, nb::arg("machine"), nb::arg("kind"), nb::arg("root"), nb::arg("count"),
        nb::arg("counts"), nb::arg("dtype"), nb::arg("op"), nb::arg("ordered"), nb::arg("in_place"),
        nb::arg("algorithm"), nb::arg("trees"), nb::arg("arity"), nb::arg("chunk"), nb::arg("memory"),
        nb::arg("shared"), nb::arg("path"),
        nb::sig("def _plan_collective(machine: Machine, kind: str, root: Any, count: Any, counts: Any, dtype: Any, "
                "op: str, ordered: Any, in_place: Any, algorithm: str, trees: Any, arity: Any, chunk: Any, "
                "memory: str, shared: Any, path: str) -> Planned"));
  m.def("_plan_named", plan_named, nb::arg("machine"), nb::arg("operation"), nb::arg("integers"), nb::arg("types"),
        nb::arg("memory"), nb::arg("shared"), nb::arg("path"),
        nb::sig("def _plan_named(machine: Machine, operation: str, integers: dict[str, Any], types: dict[str, Any], "
                "memory: str, shared: Any, path: str) -> Planned"));
  m.def("_plan_exchange", plan_exchange, nb::arg("machine"), nb::arg("fields"), nb::arg("entries"), nb::arg("reverse"),
        nb::arg("op"), nb::arg("memory"), nb::arg("shared"), nb::arg("path"),
        nb::sig("def _plan_exchange(machine: Machine, fields: Any, entries: Any, reverse: Any, op: str, memory: str, "
                "shared: Any, path: str) -> Planned"));
  m.def("_plan_redistribute", plan_redistribute, nb::arg("machine"), nb::arg("source"), nb::arg("target"),
        nb::arg("axes"), nb::arg("arrays"), nb::arg("memory"), nb::arg("shared"), nb::arg("path"), nb::arg("scratch"),
        nb::sig("def _plan_redistribute(machine: Machine, source: ArrayDistribution, target: ArrayDistribution, axes: "
                "Any, arrays: Any, memory: str, shared: Any, path: str, scratch: int) -> Planned"));
  m.def("_plan_neighbours", plan_neighbours, nb::arg("machine"), nb::arg("kind"), nb::arg("count"), nb::arg("dtype"),
        nb::arg("split"), nb::arg("periodic"), nb::arg("neighbours").none(), nb::arg("memory"), nb::arg("shared"),
        nb::arg("path"),
        nb::sig("def _plan_neighbours(machine: Machine, kind: str, count: Any, dtype: Any, split: Any, periodic: Any, "
                "neighbours: Any, memory: str, shared: Any, path: str) -> Planned"));
}

}  // namespace tasuki::python
