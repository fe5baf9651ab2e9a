// What collectives can combine of NumPy's types, and which bytes their blocks are.
#include "collective_arguments.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "grid.hpp"

namespace tasuki::python {
namespace {

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
                    dtype_name(dtype)));
  }
  return DType::none;
}

/// A struct of numbers that the core has no name for; only a function of the user's combines such.
bool is_record(nb::handle dtype) {
  if (dtype.is_none() || dtype.attr("names").is_none() || nb::cast<bool>(dtype.attr("hasobject"))) return false;
  try {
    return pair_type(dtype) == DType::none;
  } catch (const Error&) {  // a pair with other gaps than the core's
    return true;
  }
}

/// Adds elements `begin` to `end`, counted in C order of dimensions `d` and up, of which the first is at `at`.
void add_part(const Array& array, std::size_t d, std::int64_t begin, std::int64_t end, std::int64_t at,
              std::vector<std::int64_t>& displacements, std::vector<Layout>& parts) {
  if (begin >= end) return;
  Array rest;  // what one step of dimension d holds
  rest.element_bytes = array.element_bytes;
  const std::size_t inner = std::min(d + 1, array.shape.size());
  rest.shape.assign(array.shape.begin() + static_cast<std::ptrdiff_t>(inner), array.shape.end());
  rest.strides.assign(array.strides.begin() + static_cast<std::ptrdiff_t>(inner), array.strides.end());
  if (d == array.shape.size()) {
    displacements.push_back(at);
    parts.push_back(rest.layout());
    return;
  }
  const std::int64_t count =
      std::accumulate(rest.shape.begin(), rest.shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t stride = array.strides[d];
  std::int64_t first = begin / count;
  const std::int64_t last = end / count;
  if (begin % count != 0) {
    const std::int64_t until = first == last ? end % count : count;
    add_part(array, d + 1, begin % count, until, at + first * stride, displacements, parts);
    if (first++ == last) return;
  }
  if (last > first) {
    displacements.push_back(at + first * stride);
    parts.push_back(Layout::hvector(last - first, 1, stride, rest.layout()));
  }
  add_part(array, d + 1, 0, end % count, at + last * stride, displacements, parts);
}

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

Layout part_of(const Array& array, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> displacements;
  std::vector<Layout> parts;
  add_part(array, 0, begin, end, 0, displacements, parts);
  return Layout::structure(std::vector<std::int64_t>(parts.size(), 1), displacements, parts);
}

}  // namespace

std::vector<Layout> Side::blocks(std::size_t blocks, const std::optional<std::vector<std::int64_t>>& counts) const {
  if (!here) return {};
  if (layouts) return *layouts;
  std::vector<Layout> parts;
  std::int64_t begin = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::int64_t elements = counts ? (*counts)[b] : count() / static_cast<std::int64_t>(blocks);
    parts.push_back(part_of(array, begin, begin + elements));
    begin += elements;
  }
  return parts;
}

std::vector<Layout> Reading::layouts_of(nb::handle value, const Side& side, Blocks kind, std::size_t blocks) const {
  if (kind == Blocks::one) return {layout_inside(value, side.array, side.argument)};
  std::vector<nb::object> entries;
  if (nb::isinstance<Layout>(value) || !nb::try_cast(value, entries) || entries.size() != blocks)
    throw Error(fmt::format("argument '{}' has {} beside its array; it must be a list of {} Layouts, one a block",
                            side.argument, shown(value), blocks));
  std::vector<Layout> list;
  for (const nb::object& entry : entries) list.push_back(layout_inside(entry, side.array, side.argument));
  return list;
}

Told Told::of_all(const Context& context, const char* name, const Told& mine, bool combined) {
  const std::string text = fmt::format("{}{}{}", mine.layouts ? 'l' : '-', mine.given ? 'g' : '-', mine.type);
  const std::vector<std::string> texts = context.allgather(text);
  Told all = mine;
  bool differ = false;
  for (const std::string& other : texts) {
    all.layouts = all.layouts || other[0] == 'l';
    all.given = all.given || other[1] == 'g';
    differ = differ || other.substr(2) != texts[0].substr(2);
  }
  if (differ && (combined || !all.given)) context.agree(name, {{"type", mine.type}});
  return all;
}

DType combined_type(nb::handle dtype, ReduceOp op) {
  if (const DType number = number_type(dtype); number != DType::none) return number;
  if (const DType pair = pair_type(dtype); pair != DType::none) return pair;
  if (nb::cast<std::string>(dtype.attr("kind")) == "b") {
    if (op == ReduceOp::sum)
      throw Error("argument 'op' is 'sum', which has no meaning for bool; give 'lor', or an array of integers");
    return DType::u8;
  }
  throw Error(fmt::format(
      "elements of type {} cannot be combined; give integers, floats, complex numbers or bools of this "
      "processor's byte order, pairs of a value and an index, or structs of numbers with a function of your own",
      dtype_name(dtype)));
}

void Asked::combine(const Reading& reading, nb::handle by, const Context& context, const char* operation) {
  reading.need_one_type();
  op = operator_from(by, reading.dtype, context, operation);
  if (op.op() == ReduceOp::own && is_record(reading.dtype)) {
    type = DType::u8;
    op = Operator(op.name(), *op.combine(), op.commutes(), element_bytes(reading.dtype));
  } else if (!reading.dtype.is_none()) {
    type = combined_type(reading.dtype, op.op());
  }
  for (const Side* side : {&source, &target})
    if (op.op() == ReduceOp::own && side->here && side->array.where == Memory::device)
      throw Error(
          fmt::format("argument 'op' is '{}', a function that runs on the processor, but '{}' is on a GPU; give the "
                      "name of an operator, or arrays on the host",
                      op.name(), side->argument));
}

// What is only moved is moved as bytes, unless the core knows its type.
void Asked::move(const Reading& reading) {
  if (!reading.told.given) reading.need_one_type();
  if (reading.dtype.is_none()) return;
  type = number_type(reading.dtype);
  if (type != DType::none) return;
  type = DType::u8;
  const std::int64_t bytes = element_bytes(reading.dtype);
  count *= bytes;
  for (Counts* list : {&counts, &receive_counts})
    if (*list)
      for (std::int64_t& each : **list) each *= bytes;
}

// The counts of two buffers, of which at least one holds a block for each rank.
void Asked::read_blocks(Reading& reading, const Shape& shape, const Given& given) {
  if (shape.source == Blocks::many && shape.target == Blocks::many) {
    counts = reading.counts(given.send_counts, "send_counts");
    receive_counts = reading.counts(given.receive_counts, "receive_counts");
    if (counts.has_value() != receive_counts.has_value())
      throw Error("arguments 'send_counts' and 'receive_counts' come together; give both or neither");
    if (counts) {
      Reading::need_count(source, std::accumulate(counts->begin(), counts->end(), std::int64_t{0}));
      Reading::need_count(target, std::accumulate(receive_counts->begin(), receive_counts->end(), std::int64_t{0}));
    } else {
      count = reading.block(Side{}, target, {});
      if (target.counted())
        Reading::need_count(source, target.count());
      else
        reading.block(Side{}, source, {});
    }
    if (source.layouts || source.in_place) reading.counts_for(given.receive_counts, "receive_counts", target);
    if (target.layouts) reading.counts_for(given.send_counts, "send_counts", source);
    return;
  }
  counts = reading.counts(given.counts, "counts");
  const bool of_target = shape.target == Blocks::many || target_is_source;
  const Side& total = of_target ? target : source;
  const Side& part = of_target ? source : target;
  count = reading.block(part, total, counts);
  reading.counts_for(given.counts, "counts", total);
}

void Asked::read_neighbours(Reading& reading, const Shape& shape, const Given& given) {
  const auto equal = [](const Side& side, std::size_t blocks) {
    const auto number = static_cast<std::int64_t>(blocks);
    if (!side.counted()) return std::vector<std::int64_t>(blocks, 0);
    if (number == 0 ? side.count() > 0 : side.count() % number != 0)
      throw Error(fmt::format("argument '{}' has {} elements, which are no {} equal blocks; give counts", side.argument,
                              side.count(), number));
    return std::vector<std::int64_t>(blocks, number == 0 ? 0 : side.count() / number);
  };
  const auto given_or_equal = [&](nb::handle list, const char* argument, const Side& side, std::size_t blocks) {
    if (list.is_none()) return equal(side, blocks);
    auto found = reading.counts(list, argument, blocks);
    Reading::need_count(side, std::accumulate(found->begin(), found->end(), std::int64_t{0}));
    return *found;
  };
  if (shape.source == Blocks::many) reading.counts_for(given.send_counts, "send_counts", source);
  reading.counts_for(given.receive_counts, "receive_counts", target);
  count = source.count();
  if (shape.source == Blocks::many) counts = given_or_equal(given.send_counts, "send_counts", source, sent);
  receive_counts = given_or_equal(given.receive_counts, "receive_counts", target, received);
}

void Asked::read(Reading& reading, const Shape& shape, const Given& given, const Context& context) {
  const bool among_neighbours = !given.neighbours.is_none();
  if (among_neighbours) neighbours = neighbours_from(given.neighbours);
  sent = among_neighbours ? neighbours.to.size() : static_cast<std::size_t>(context.size());
  received = among_neighbours ? neighbours.from.size() : sent;
  const bool here = !given.root || context.rank() == *given.root;
  const bool source_here = here || !shape.source_at_root;
  const bool target_here = here || !shape.target_at_root;
  target_is_source = nb::isinstance<InPlace>(given.source) && !shape.target_in_place && shape.source == Blocks::many &&
                     shape.target == Blocks::one;
  if (source_here) source = reading.side(given.source, "source", false, shape.source, sent);
  if (target_here)
    target = reading.side(given.target, "target", true, target_is_source ? Blocks::many : shape.target, received);
  Side& marked = shape.target_in_place ? target : source;
  for (Side* side : {&source, &target}) {
    if (side == &source ? !source_here : !target_here) continue;
    side == &marked&& shape.in_place ? reading.need(*side) : reading.need_array(*side, shape.in_place);
  }
  if (shape.in_place_at_root) reading.root_only(marked, *given.root);
  if (among_neighbours) {
    read_neighbours(reading, shape, given);
  } else if (shape.source == Blocks::one && shape.target == Blocks::one) {
    count = target.here ? target.count() : source.count();
    if (target.counted()) Reading::need_count(source, count);
  } else {
    read_blocks(reading, shape, given);
  }
  element_counts = counts;
  receive_elements = receive_counts ? receive_counts : counts;
  reading.distinct(source, target, shape.in_place);
  shape.combined ? combine(reading, given.op, context, shape.name) : move(reading);
}

}  // namespace tasuki::python
