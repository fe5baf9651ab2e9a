// Exchanges from Python: fields of cells as arrays, and entries as lists of cells or layouts; live and off line.
#include "exchange.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <utility>

#include "arguments.hpp"
#include "layout.hpp"
#include "making.hpp"
#include "module.hpp"
#include "tasuki/error.hpp"
#include "tasuki/exchange.hpp"

namespace tasuki::python {
namespace {

/// A field by its name, as it was given.
using NamedField = std::pair<std::string, nb::object>;

bool is_pair(nb::handle value) {
  int dimension = 0;
  return nb::isinstance<nb::tuple>(value) && nb::len(value) == 2 && as_integer(value[1], dimension);
}

/// A field, a list of them, or a dictionary.
std::vector<NamedField> named_fields(nb::handle fields) {
  std::vector<NamedField> all;
  if (nb::isinstance<nb::dict>(fields)) {
    for (const auto& [name, field] : nb::cast<nb::dict>(fields))
      all.emplace_back(nb::cast<std::string>(nb::str(name)), nb::borrow(field));
    return all;
  }
  const bool list = nb::isinstance<nb::list>(fields) || (nb::isinstance<nb::tuple>(fields) && !is_pair(fields));
  if (!list) return {{"field", nb::borrow(fields)}};
  for (const nb::handle field : nb::borrow<nb::sequence>(fields))
    all.emplace_back(fmt::format("field{}", all.size()), nb::borrow(field));
  return all;
}

/// How the array's cells lie, which its dimension `along` counts.
Cells cells_of(const Array& array, std::size_t along, const std::string& name) {
  Layout cell = Layout::bytes(array.element_bytes);
  for (std::size_t d = array.shape.size(); d-- > 0;)
    if (d != along) cell = Layout::hvector(array.shape[d], 1, array.strides[d], cell);
  return {name, Layout::resized(cell, 0, array.strides[along]), number_type(array.dtype), array.shape[along]};
}

ExchangeField field_from(const NamedField& given, const Context& context, std::vector<Array>& keep) {
  const std::string& name = given.first;
  const bool pair = is_pair(given.second);
  const nb::object object = pair ? nb::object(given.second[0]) : given.second;
  const Array array = array_from(object, name, true, true);
  check_gpu(array, context, name);
  int along = 0;
  if (pair) as_integer(given.second[1], along);
  const int dims = static_cast<int>(array.shape.size());
  if (along < -dims || along >= dims)
    throw Error(fmt::format("field {}: cells are counted along dimension {}, but the array has {}", name, along, dims));
  keep.push_back(array);
  const auto d = static_cast<std::size_t>(along < 0 ? along + dims : along);
  return {array.data, cells_of(array, d, name)};
}

/// One list of an entry: cells, or layouts of the arrays.
void read_list(nb::handle value, const std::string& what, const std::vector<Array>& arrays,
               std::vector<std::int64_t>& cells, std::vector<Layout>& layouts) {
  std::vector<nb::object> parts;
  if (nb::isinstance<Layout>(value)) {
    parts.push_back(nb::borrow(value));
  } else if (nb::isinstance<nb::list>(value) && nb::len(value) > 0 && nb::isinstance<Layout>(value[0])) {
    parts = nb::cast<std::vector<nb::object>>(value);
  } else {
    cells = cells_from(value, what);
    return;
  }
  if (parts.size() != arrays.size())
    throw Error(fmt::format("{} has {} layouts for {} fields", what, parts.size(), arrays.size()));
  for (std::size_t f = 0; f < parts.size(); ++f) layouts.push_back(layout_inside(parts[f], arrays[f], what));
}

nb::list found_entries(const ContextHandle& context, nb::handle owned, nb::handle ghosts) {
  const std::shared_ptr<Owner>& owner = context.owner;
  std::vector<std::int64_t> mine, wanted;
  owner->agree("find_entries", [&] {
    mine = cells_from(owned, "argument 'owned'");
    wanted = cells_from(ghosts, "argument 'ghosts'");
  });
  const nb::object from_buffer = nb::module_::import_("numpy").attr("frombuffer");
  const auto array = [&](const std::vector<std::int64_t>& cells) {
    return from_buffer(nb::bytes(cells.data(), cells.size() * sizeof(std::int64_t)), "int64");
  };
  nb::list entries;
  for (const ExchangeEntry& entry : find_entries(owner->context(), mine, wanted))
    entries.append(nb::make_tuple(entry.peer, array(entry.send), array(entry.receive)));
  return entries;
}

}  // namespace

std::vector<std::int64_t> cells_from(nb::handle value, const std::string& what) {
  if (value.is_none()) return {};
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object list = numpy.attr("asarray")(value);
  const std::string kind = nb::cast<std::string>(list.attr("dtype").attr("kind"));
  if (nb::cast<std::int64_t>(list.attr("size")) == 0) return {};
  if (nb::cast<int>(list.attr("ndim")) != 1 || (kind != "i" && kind != "u"))
    throw Error(fmt::format("{} is {}; it must be a list of cells: integers in one dimension{}", what, shown(value),
                            kind == "b" ? " (of a mask: numpy.flatnonzero(mask))" : ""));
  list = numpy.attr("ascontiguousarray")(list, "int64");
  const Array array = array_from(list, what, false);
  std::vector<std::int64_t> cells(static_cast<std::size_t>(array.shape[0]));
  std::memcpy(cells.data(), array.data, cells.size() * sizeof(std::int64_t));
  return cells;
}

std::vector<ExchangeEntry> entries_from(nb::handle entries, const std::vector<Array>& arrays) {
  std::vector<nb::object> given;
  if (!nb::try_cast(entries, given))
    throw Error(fmt::format("argument 'entries' is {}; it must be a list of (rank, send, receive)", shown(entries)));
  std::vector<ExchangeEntry> all;
  for (const nb::object& one : given) {
    std::vector<nb::object> parts;
    ExchangeEntry& entry = all.emplace_back();
    const std::string name = fmt::format("entry {}", all.size() - 1);
    if (!nb::try_cast(one, parts) || parts.size() != 3 || !as_integer(parts[0], entry.peer))
      throw Error(fmt::format("{} is {}; it must be (rank, send, receive)", name, shown(one)));
    read_list(parts[1], name + ": 'send'", arrays, entry.send, entry.send_layouts);
    read_list(parts[2], name + ": 'receive'", arrays, entry.receive, entry.receive_layouts);
  }
  return all;
}

NewOperation made_exchange(const ContextHandle& context, nb::handle fields, nb::handle entries, const std::string& op,
                           ExchangeOptions options) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  OperationCore& core = made.core;
  std::vector<ExchangeField> read;
  std::vector<ExchangeEntry> listed;
  owner->agree("Exchange", [&] {
    for (const NamedField& field : named_fields(fields))
      read.push_back(field_from(field, owner->context(), core.arrays));
    listed = entries_from(entries, core.arrays);
    options.op = reduce_op_from_string(op);
  });
  core.operation = Exchange(owner->context(), read, listed, options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  return made;
}

void bind_exchange(nb::module_& m) {
  m.def("find_entries", found_entries, nb::arg("context"), nb::arg("owned"), nb::arg("ghosts"),
        nb::sig("def find_entries(context: Context, owned: ArrayLike, ghosts: ArrayLike) -> list[tuple[int, "
                "NDArray[Any], NDArray[Any]]]"),
        R"(The entries for `Exchange` where every cell has a number that is the same on all ranks. Collective.

owned: the numbers of the cells 0, 1, ... of this rank. ghosts: those of the cells that follow them, in the order wanted.
Who owns what is found out through a directory that is spread over the ranks. Raises tasuki.Error on every rank for a
cell that is owned twice, and for a ghost that nobody owns.)");
}

}  // namespace tasuki::python
