// What collectives can combine of NumPy's types, and which bytes their blocks are.
#include "collective_arguments.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>

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
                    name_of(dtype)));
  }
  return DType::none;
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
  throw Error(
      fmt::format("elements of type {} cannot be combined; give integers, floats, complex numbers or bools of this "
                  "processor's byte order, or pairs of a value and an index",
                  name_of(dtype)));
}

}  // namespace tasuki::python
