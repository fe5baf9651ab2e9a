// What translated programs call: see xmp_translated.h.
#include "xmp_translated.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "loops.hpp"
#include "objects.hpp"
#include "sets.hpp"
#include "whereabouts.hpp"
#include "world.hpp"

namespace tasuki::xmp {

namespace {

std::vector<void (*)()>& declarations() {
  static auto& all = *new std::vector<void (*)()>;
  return all;
}

void end_program(int status, void* /*unused*/) {
  if (!started()) return;
  int over = 0;
  MPI_Finalized(&over);
  if (over != 0) return;
  if (status == 0) {
    xmp_finalize();
  } else {
    std::fflush(nullptr);               // what the program has printed, for MPI_Abort ends it at once
    MPI_Abort(MPI_COMM_WORLD, status);  // the others would wait for this node
  }
}

// Element 0, 0, ... of an array whose memory begins at `memory`; mostly outside of it, so that it is computed as a
// number.
std::uintptr_t distance_of_origin(const xmp_view& view, std::int64_t element) {
  std::int64_t elements = 0;
  for (int d = 0; d < view.ndims; ++d) elements += view.base[d] * view.strides[d];
  return static_cast<std::uintptr_t>(elements * element);
}

void* placed(xmp_placed& array) {
  xmp_view view;
  xmp_get_view(array.desc, &view);
  const std::int64_t element = array_of(array.desc, "array").shape.element_bytes();
  array.origin =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(view.data) - distance_of_origin(view, element));
  std::copy(view.extents, view.extents + XMP_MAX_DIMS, array.extents);
  return view.data;
}

void* place(xmp_placed& array) {
  void* memory = nullptr;
  xmp_allocate(array.desc, &memory);
  if (const std::int64_t bytes = xmp_local_bytes(array.desc); bytes > 0)
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return placed(array);
}

const NodeShape& nodes_behind(xmp_desc_t on) {
  return kind_of(on) == Object::Kind::template_ ? template_of(on, "on").nodes : nodes_of(on, "on").shape;
}

int ndims_of(xmp_desc_t on) {
  if (kind_of(on) == Object::Kind::template_) return static_cast<int>(template_of(on, "on").ndims);
  return nodes_of(on, "on").shape.ndims();
}

// Of a dimension of nodes, each of them has one index.
Spread spread_of(xmp_desc_t on, int dim) {
  if (dim < 0 || dim >= ndims_of(on)) refuse("argument 'dim' is {}; it must be 0 to {}", dim, ndims_of(on) - 1);
  const auto d = static_cast<std::size_t>(dim);
  if (kind_of(on) == Object::Kind::template_) return template_of(on, "on").fixed()[d];
  const int extent = nodes_of(on, "on").shape.extents[d];
  return {Cut::block(0, extent, extent, 1), dim};
}

// The loop's indices as the template has them. What nobody owns would be lost.
Range within(const Spread& spread, int dim, const xmp_range& all, std::int64_t offset) {
  const Range given = range_from(all);
  const Range moved{given.first + offset, given.end + offset, given.step};
  const std::int64_t last = moved.count() > 0 ? moved.first + (moved.count() - 1) * moved.step : moved.first;
  if (moved.count() > 0 && (moved.first < spread.cut.first() || last >= spread.cut.end()))
    refuse("the loop has the indices {} to {} of dimension {}, which has {} to {}; keep it within", moved.first, last,
           dim, spread.cut.first(), spread.cut.end() - 1);
  return moved;
}

template <class T>
void fill(void* data, std::int64_t count, T value) {
  std::fill_n(static_cast<T*>(data), count, value);
}

// 0, 1 or -1 in each element.
void fill(const xmp_variable& v, int value) {
  switch (v.type) {
    case XMP_F32:
      return fill(v.data, v.count, static_cast<float>(value));
    case XMP_F64:
      return fill(v.data, v.count, static_cast<double>(value));
    case XMP_C64:
      return fill(v.data, v.count, std::array<float, 2>{static_cast<float>(value), 0});
    case XMP_C128:
      return fill(v.data, v.count, std::array<double, 2>{static_cast<double>(value), 0});
    case XMP_I8:
    case XMP_U8:
      return fill(v.data, v.count, static_cast<std::int8_t>(value));
    case XMP_I16:
    case XMP_U16:
      return fill(v.data, v.count, static_cast<std::int16_t>(value));
    case XMP_I32:
    case XMP_U32:
      return fill(v.data, v.count, static_cast<std::int32_t>(value));
    case XMP_I64:
    case XMP_U64:
      return fill(v.data, v.count, static_cast<std::int64_t>(value));
    default:
      refuse("the type of a variable is {}, which is none", v.type);
  }
}

xmp_desc_t add_nodes(std::vector<int> ranks) {
  auto nodes = std::make_unique<Nodes>();
  nodes->shape.extents = {static_cast<int>(ranks.size())};
  nodes->shape.ranks = std::move(ranks);
  nodes->attr = XMP_EQUIVALENCE_NODES;
  return add_object(std::move(nodes));
}

}  // namespace

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)

extern "C" {

void xmp_at_start(void (*declare)(void)) {
  declarations().push_back(declare);
}

void xmp_start(int argc, char** argv) {
  if (started()) return;  // main calls itself
  xmp_init(argc, argv);
  on_exit(end_program, nullptr);
  for (const auto declare : declarations()) declare();
}

void xmp_at(const char* line) {
  line_now = line;
}

void xmp_place(xmp_placed* array) {
  guarded("xmp_place", [&] { place(*given(array, "array")); });
}

void xmp_place_at(xmp_placed* array, const void* origin) {
  guarded("xmp_place_at", [&] {
    given(array, "array");
    xmp_view view;
    xmp_get_view(array->desc, &view);
    if (view.bytes == 0) return;
    const std::int64_t element = array_of(array->desc, "array").shape.element_bytes();
    const auto at = reinterpret_cast<std::uintptr_t>(origin) + distance_of_origin(view, element);
    xmp_bind(array->desc, reinterpret_cast<void*>(at));
    placed(*array);
  });
}

void* xmp_place_anew(xmp_placed* array) {
  void* memory = nullptr;
  guarded("xmp_malloc", [&] { memory = place(*given(array, "array")); });
  return memory;
}

void xmp_drop(xmp_desc_t* desc) {
  if (started() && *desc != nullptr) xmp_free(desc);
}

void xmp_drop_placed(xmp_placed* array) {
  xmp_drop(&array->desc);
}

void xmp_leave(const int* task) {
  if (*task != 0) xmp_task_end();
}

const xmp_range* xmp_section(xmp_desc_t on, xmp_range section[]) {
  guarded("xmp_section", [&] {
    if (kind_of(on) == Object::Kind::array) {
      const ArrayShape& shape = array_of(on, "on").shape;
      for (int d = 0; d < shape.ndims(); ++d)
        if (section[d].end == XMP_OPEN_END) section[d].end = shape.dim(d).extent;
      return;
    }
    Coordinates at{};
    const bool mine = coordinates_in(nodes_behind(on), at);
    for (int d = 0; d < ndims_of(on); ++d) {
      xmp_range& range = section[d];
      const Spread spread = spread_of(on, d);
      if (range.first == XMP_OWN) {
        range.first = mine ? at[static_cast<std::size_t>(d)] : 0;
        range.end = range.first + 1;
      }
      if (range.first == XMP_OPEN_FIRST) range.first = spread.cut.first();
      if (range.end == XMP_OPEN_END) range.end = spread.cut.end();
    }
  });
  return section;
}

xmp_desc_t xmp_set(xmp_desc_t on, const xmp_range section[]) {
  xmp_desc_t set = nullptr;
  guarded("xmp_set", [&] { set = add_nodes(nodes_in(on, section).ranks); });
  return set;
}

int xmp_contains(xmp_desc_t on, const xmp_range section[]) {
  int any = 0;
  guarded("xmp_contains", [&] { any = nodes_in(on, section).number_of(world().rank()) >= 0 ? 1 : 0; });
  return any;
}

int xmp_source(xmp_desc_t from, const xmp_range section[], xmp_desc_t on) {
  int number = -1;
  guarded("xmp_source", [&] {
    const NodeShape source = nodes_in(from, section);
    if (source.size() != 1) refuse("'from' names {} nodes; it must be one", source.size());
    number = (on == nullptr ? world().executing() : nodes_of(on, "on").shape).number_of(source.ranks.front());
    if (number < 0) refuse("rank {}, which 'from' names, does not take part", source.ranks.front());
  });
  return number;
}

int xmp_enter(xmp_desc_t on, const xmp_range section[]) {
  int mine = 0;
  xmp_task_begin(on, section, &mine);
  return mine;
}

const int64_t* xmp_map(xmp_desc_t nodes, int dim, const int* map) {
  static std::array<std::vector<std::int64_t>, 4> maps;
  static std::size_t next = 0;
  std::vector<std::int64_t>& mine = maps[next++ % maps.size()];
  guarded("xmp_map", [&] {
    const NodeShape& shape = nodes_of(nodes, "nodes").shape;
    mine.assign(map, map + shape.extents.at(static_cast<std::size_t>(dim)));
  });
  return mine.data();
}

xmp_range xmp_part(xmp_desc_t on, int dim, xmp_range all, int64_t offset) {
  xmp_range part{0, 0, 1};
  guarded("loop", [&] {
    const Spread spread = spread_of(on, dim);
    const Range loop = within(spread, dim, all, offset);
    Coordinates at{};
    if (!coordinates_in(nodes_behind(on), at)) return;
    if (spread.cut.format() == Format::cyclic && spread.cut.size() > 1)
      refuse("dimension {} is cyclic({}), so that its iterations are no single range", dim, spread.cut.size());
    const Range mine = next_piece(spread.cut, part_of(spread, at), loop, loop.first);
    part = {mine.first - offset, mine.end - offset, mine.step};
  });
  return part;
}

xmp_loop xmp_pieces(xmp_desc_t template_, int dim, xmp_range all, int64_t offset) {
  xmp_loop loop{};
  guarded("loop", [&] {
    const Range moved = within(spread_of(template_, dim), dim, all, offset);
    xmp_loop_begin(&loop, template_, dim, {moved.first, moved.end, moved.step});
  });
  return loop;
}

int xmp_has(xmp_desc_t on, int dim, int64_t index) {
  int any = 0;
  guarded("loop", [&] {
    const Spread spread = spread_of(on, dim);
    (void)within(spread, dim, {index, index + 1, 1}, 0);
    Coordinates at{};
    if (!coordinates_in(nodes_behind(on), at)) return;
    any = spread.cut.format() == Format::whole || spread.cut.owner(index) == part_of(spread, at) ? 1 : 0;
  });
  return any;
}

xmp_desc_t xmp_combiners(xmp_desc_t on, const int runs[]) {
  xmp_desc_t set = nullptr;
  guarded("reduction", [&] {
    const NodeShape& nodes = nodes_behind(on);
    std::array<bool, XMP_MAX_DIMS> along{};
    for (int d = 0; d < ndims_of(on); ++d)
      if (const Spread spread = spread_of(on, d); spread.node_dim >= 0 && runs[d] != 0)
        along[static_cast<std::size_t>(spread.node_dim)] = true;
    Coordinates mine{};
    if (!coordinates_in(nodes, mine)) {
      set = add_nodes(nodes.ranks);  // of which this one is none
      return;
    }
    std::vector<int> ranks;
    for (int n = 0; n < nodes.size(); ++n) {
      const Coordinates at = nodes.coordinates(n);
      bool same = true;
      for (std::size_t d = 0; d < nodes.extents.size(); ++d) same = same && (along[d] || at[d] == mine[d]);
      const int rank = nodes.ranks[static_cast<std::size_t>(n)];
      if (same && world().executing().number_of(rank) >= 0) ranks.push_back(rank);
    }
    set = add_nodes(std::move(ranks));
  });
  return set;
}

void xmp_clear(int op, int count, const xmp_variable variables[], xmp_desc_t on) {
  guarded("reduction", [&] {
    if (nodes_of(on, "on").shape.number_of(world().rank()) < 1) return;
    for (int i = 0; i < count; ++i) {
      if (op == XMP_SUM || op == XMP_MINUS || op == XMP_BXOR) fill(variables[i], 0);
      if (op == XMP_PROD) fill(variables[i], 1);
      // Of the others, a value may be combined with itself.
    }
  });
}

xmp_desc_t xmp_local(void* data, int type, int64_t element_bytes, int ndims, const int64_t extents[]) {
  xmp_array_spec spec{};
  spec.name = "local";
  spec.type = type;
  spec.element_bytes = element_bytes;
  spec.ndims = ndims;
  spec.extents = extents;
  xmp_desc_t array = nullptr;
  xmp_array(&array, &spec, nullptr);
  xmp_bind(array, data);
  return array;
}
}
