// Making halos, transfers and broadcasts from Python's arguments.
#include "making.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.hpp"
#include "layout.hpp"

namespace tasuki::python {
namespace {

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

/// Type and shape, which must agree between ranks; nothing for bytes, which may become anything.
std::string elements_of(const Array& array) {
  if (array.element_bytes == 1) return {};
  return fmt::format("{} of shape ({})", dtype_name(array.dtype), fmt::join(array.shape, ", "));
}

/// One side of a transfer as it was given.
struct TransferEnd {
  const char* argument;
  bool writable;
  int rank = 0;
  std::vector<nb::object> parts = {};
};

/// (rank, array), (rank, array, layout) or, on the other ranks, (rank, None). Throws `Error` on this rank alone:
/// without the sides' ranks nobody knows who is to hear of it.
TransferEnd parse_side(nb::handle value, const char* argument, bool writable, const Context& context) {
  TransferEnd side{argument, writable};
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

TransferSide transfer_side(const TransferEnd& given, const Context& context, std::vector<Array>& keep) {
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

}  // namespace

NewOperation made_halo(nb::handle fields, nb::handle width, const HaloOptions& options) {
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
  // Which context to agree with is known from the first field only.
  const bool entry_is_pair = nb::isinstance<nb::tuple>(entries[0]) && nb::len(entries[0]) > 0;
  const nb::object first = entry_is_pair ? nb::object(entries[0][0]) : entries[0];
  if (!nb::isinstance<PyField>(first))
    throw Error(fmt::format(
        "Halo: argument 'fields' is {}; it must be a Field, a pair (Field, width) or a list of these", shown(fields)));
  const std::shared_ptr<Owner>& owner = inside<PyField>(first).shared_owner();
  NewOperation made{owner, {}};
  OperationCore& core = made.core;
  std::vector<HaloField> halos;
  owner->agree("Halo", [&] {
    for (const nb::object& entry : entries) {
      const bool pair = nb::isinstance<nb::tuple>(entry);
      halos.push_back(
          halo_field(pair || width.is_none() ? nb::object(entry) : nb::make_tuple(entry, width), core.fields));
    }
  });
  core.operation = Halo(halos, options);
  if (nb::inst_ptr<PyField>(core.fields[0])->on_gpu()) core.fork.emplace();
  return made;
}

NewOperation made_transfer(const ContextHandle& context, nb::handle source, nb::handle target,
                           const OperationOptions& options) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  OperationCore& core = made.core;
  const TransferEnd from_here = parse_side(source, "source", false, owner->context());
  const TransferEnd to_there = parse_side(target, "target", true, owner->context());
  TransferSide from;
  TransferSide to;
  const int sides[] = {from_here.rank, to_there.rank};
  owner->agree("Transfer", sides, [&] {
    from = transfer_side(from_here, owner->context(), core.arrays);
    to = transfer_side(to_there, owner->context(), core.arrays);
  });
  core.operation = Transfer(owner->context(), from, to, options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  core.idle = core.operation.plan().commands.empty();
  return made;
}

NewOperation made_broadcast(const ContextHandle& context, int root, nb::handle data, const BroadcastOptions& options) {
  const std::shared_ptr<Owner>& owner = context.owner;
  NewOperation made{owner, {}};
  OperationCore& core = made.core;
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
  if (with_layouts)
    core.operation = Broadcast(owner->context(), root, array.data, layout ? *layout : array.layout(), options);
  else
    core.operation = Broadcast(owner->context(), root, array.data, array.high(), options);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  return made;
}

}  // namespace tasuki::python
