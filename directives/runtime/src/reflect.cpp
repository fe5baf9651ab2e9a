// See reflect.hpp.
#include "reflect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "moves.hpp"
#include "tasuki/error.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/halo.hpp"
#include "tasuki/neighbours.hpp"
#include "whereabouts.hpp"
#include "world.hpp"

namespace tasuki::xmp {

namespace {

// The nodes that an array is spread over, without those that have the same elements: in the order of the array's
// dimensions, as grids number their ranks.
std::vector<int> spread_ranks(const Array& array) {
  const ArrayShape& shape = array.shape;
  const NodeShape& nodes = shape.nodes();
  std::vector<std::pair<std::int64_t, int>> found;
  for (int n = 0; n < nodes.size(); ++n) {
    const Coordinates at = nodes.coordinates(n);
    bool same = true;
    for (const int dim : shape.replicated()) {
      const auto i = static_cast<std::size_t>(dim);
      same = same && at[i] == array.at[i];
    }
    if (!same) continue;
    std::int64_t place = 0;
    for (int d = 0; d < shape.ndims(); ++d) place = place * shape.cut(d).parts() + shape.part(d, at);
    found.emplace_back(place, nodes.ranks[static_cast<std::size_t>(n)]);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> ranks;
  for (const auto& [place, rank] : found) ranks.push_back(rank);
  return ranks;
}

// A field over the array's memory, on a grid that is periodic there. Collective when it is first asked for.
FieldBase field_of(Array& array, Memory where, const std::vector<bool>& periodic) {
  Array::Place& place = array.place(where);
  const auto found = place.fields.find(periodic);
  if (found != place.fields.end()) return found->second;
  const ArrayShape& shape = array.shape;
  std::vector<std::int64_t> extents;
  GridOptions how;
  how.periodic = periodic;
  how.cuts.resize(static_cast<std::size_t>(shape.ndims()));
  FieldOptions options;
  options.name = array.name;
  options.memory = where;
  options.shadow = 0;
  for (int d = 0; d < shape.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    extents.push_back(shape.dim(d).extent);
    how.split.push_back(shape.cut(d).parts());
    if (shape.distributed(d))
      for (int part = 0; part <= shape.cut(d).parts(); ++part) how.cuts[i].push_back(shape.begin_of(d, part));
    options.shadow.lo[i] = shape.dim(d).shadow.below;
    options.shadow.hi[i] = shape.dim(d).shadow.above;
  }
  const Grid grid(world().context(spread_ranks(array)), extents, how);
  return place.fields
      .emplace(periodic, ArrayField(grid, options, shape.element_bytes(), array.type, memory_of_array(array, where)))
      .first->second;
}

Width halo_width(const Array& array, const ReflectCall& call) {
  Width width = 0;
  for (int d = 0; d < array.shape.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const Layers layers = call.width.empty() ? array.shape.dim(d).shadow : call.width[i];
    width.lo[i] = layers.below;
    width.hi[i] = layers.above;
  }
  return width;
}

// Where every node has memory for all of a dimension, what it gets depends on where it is: blocks between nodes, in the
// array itself.
Operation full_shadow(Array& array, const ReflectCall& call, Memory where) {
  std::vector<Layers> width;
  for (int d = 0; d < array.shape.ndims(); ++d) {
    const ArrayDim& dim = array.shape.dim(d);
    const Layers whole = dim.full_shadow ? Layers{-1, -1} : dim.shadow;
    width.push_back(call.width.empty() ? whole : call.width[static_cast<std::size_t>(d)]);
  }
  const Moves moves = shadow_moves(array.shape, width, call.corners, world().rank());
  const NodeShape& nodes = array.shape.nodes();
  std::vector<int> to;
  std::vector<int> from;
  std::vector<Layout> sent;
  std::vector<Layout> received;
  for (const Packet& block : moves.sent) {
    to.push_back(nodes.number_of(block.rank));
    sent.push_back(block.layout);
  }
  for (const Packet& block : moves.received) {
    from.push_back(nodes.number_of(block.rank));
    received.push_back(block.layout);
  }
  void* const memory = memory_of_array(array, where);
  OperationOptions options;
  options.path = call.path;
  return NeighbourAlltoall(world().context(nodes.ranks), Neighbours(to, from), memory, sent, memory, received, options);
}

// What is wrong with the call for an array; empty: nothing.
std::string complaint_about(Array& array, const ReflectCall& call, Memory where) {
  const ArrayShape& shape = array.shape;
  const auto ndims = static_cast<std::size_t>(shape.ndims());
  if (!call.width.empty() && call.width.size() != ndims)
    return fmt::format("array '{}' has {} dimensions, but the first one, for which the widths are, has {}", array.name,
                       ndims, call.width.size());
  if (!call.periodic.empty() && call.periodic.size() != ndims)
    return fmt::format("array '{}' has {} dimensions, but the first one, for which 'periodic' is, has {}", array.name,
                       ndims, call.periodic.size());
  if (array.place(where).memory == nullptr && array.bytes() > 0)
    return fmt::format("array '{}' has no memory on the {}; call {} first", array.name,
                       where == Memory::host ? "host" : "GPU",
                       where == Memory::host ? "xmp_allocate or xmp_bind" : "xacc_allocate or xacc_bind");
  for (int d = 0; d < shape.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const ArrayDim& dim = shape.dim(d);
    const bool periodic = !call.periodic.empty() && call.periodic[i];
    if (!call.width.empty() && !dim.full_shadow) {
      const auto [below, above] = call.width[i];
      if (below < 0 || above < 0 || below > dim.shadow.below || above > dim.shadow.above)
        return fmt::format(
            "width {}:{} goes beyond the shadow of array '{}' in dimension {}, which is {}:{}; make the "
            "shadow wider, or the width smaller",
            below, above, array.name, d, dim.shadow.below, dim.shadow.above);
    }
    if (dim.full_shadow && (call.reverse || periodic))
      return fmt::format("dimension {} of array '{}' has a full shadow, which {}", d, array.name,
                         call.reverse ? "cannot be added into the owners; give the shadow a width"
                                      : "has nothing beyond the array's edges, so it is not periodic");
  }
  if (call.reverse && array.type == DType::none)
    return fmt::format("the elements of array '{}' are bytes, which cannot be added; give it a type", array.name);
  return {};
}

// Whether this rank is a node of the array, and its shadow can be filled at all. Cyclic arrays have none.
void require_reflectable(const Array& array) {
  for (int d = 0; d < array.shape.ndims(); ++d)
    if (!array.shape.cut(d).contiguous())
      refuse("array '{}' is distributed cyclic in dimension {}, where it has no shadow", array.name, d);
}

std::vector<std::int64_t> key_of(const ReflectCall& call, Memory where) {
  std::vector<std::int64_t> key{1, static_cast<std::int64_t>(where), call.corners ? 1 : 0, call.reverse ? 1 : 0};
  for (const xmp_desc_t desc : call.arrays) {
    Array& array = array_of(desc, "arrays");
    key.push_back(array.serial);
    key.push_back(array.place(where).generation);
  }
  key.push_back(static_cast<std::int64_t>(call.width.size()));
  for (const Layers& layers : call.width) key.insert(key.end(), {layers.below, layers.above});
  key.insert(key.end(), call.periodic.begin(), call.periodic.end());
  return key;
}

std::string text_for_explain;

void is_about(const Array& array) {
  doing_now->array = &array.name;
  doing_now->nodes = &array.shape.nodes();
}

}  // namespace

void* memory_of_array(Array& array, Memory where) {
  Array::Place& place = array.place(where);
  if (place.memory == nullptr && array.bytes() > 0)
    refuse("array '{}' has no memory on the {}; call {} first", array.name, where == Memory::host ? "host" : "GPU",
           where == Memory::host ? "xmp_allocate or xmp_bind" : "xacc_allocate or xacc_bind");
  return place.memory;
}

ReflectCall reflect_call(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, bool reverse) {
  if (count < 1) refuse("argument 'count' is {}; give at least one array", count);
  given(arrays, "arrays");
  ReflectCall call;
  call.arrays.assign(arrays, arrays + count);
  call.reverse = reverse;
  const Array& first = array_of(arrays[0], "arrays");
  is_about(first);
  for (int i = 0; i < count; ++i) {
    require_reflectable(array_of(arrays[i], "arrays"));
    for (int j = 0; j < i; ++j)
      if (arrays[i] == arrays[j]) refuse("array '{}' is named twice; name it once", array_of(arrays[i], "arrays").name);
  }
  if (options == nullptr) return call;
  const int ndims = first.shape.ndims();
  for (int d = 0; d < ndims && options->width != nullptr; ++d)
    call.width.push_back({options->width[d].below, options->width[d].above});
  for (int d = 0; d < ndims && options->periodic != nullptr; ++d) call.periodic.push_back(options->periodic[d] != 0);
  if (std::find(call.periodic.begin(), call.periodic.end(), true) == call.periodic.end()) call.periodic.clear();
  call.corners = options->orthogonal == 0;
  if (options->path != nullptr) call.path = options->path;
  return call;
}

namespace {

// Of arrays over the same nodes, which travel together. Collective over these nodes when it is first asked for, and
// when an array has other memory: nothing of it depends on arrays of other nodes.
std::shared_ptr<Work> prepare_on(const char* name, const std::vector<int>& ranks, const ReflectCall& call,
                                 Memory where) {
  const Key key{key_of(call, where), call.path};
  if (auto found = world().find(key)) return found;
  auto work = std::make_shared<Work>();
  std::string names;
  std::string complaint;
  for (const xmp_desc_t desc : call.arrays) {
    Array& array = array_of(desc, "arrays");
    work->arrays.push_back(array.serial);
    names += (names.empty() ? "" : ",") + array.name;
    if (complaint.empty()) complaint = complaint_about(array, call, where);
  }
  agree(world().context(ranks), fmt::format("{} of {}", name, names), complaint);
  std::vector<HaloField> fields;
  for (const xmp_desc_t desc : call.arrays) {
    Array& array = array_of(desc, "arrays");
    if (array.shape.has_full_shadow())
      work->operations.push_back(full_shadow(array, call, where));
    else
      fields.emplace_back(field_of(array, where, call.periodic), halo_width(array, call));
  }
  if (!fields.empty()) {
    HaloOptions options;
    options.path = call.path;
    options.corners = call.corners;
    options.reverse = call.reverse;
    work->operations.push_back(Halo(fields, options));
  }
  world().keep(key, ranks, work);
  return work;
}

}  // namespace

std::shared_ptr<Work> prepare(const char* name, const ReflectCall& call, Memory where) {
  const Key key{key_of(call, where), call.path};
  if (auto found = world().find(key)) return found;
  std::map<std::vector<int>, std::vector<xmp_desc_t>> together;
  std::vector<std::vector<int>> order;
  std::vector<std::int64_t> arrays;
  for (const xmp_desc_t desc : call.arrays) {
    const Array& array = array_of(desc, "arrays");
    arrays.push_back(array.serial);
    if (array.number < 0) continue;
    std::vector<int> ranks = array.shape.has_full_shadow() ? array.shape.nodes().ranks : spread_ranks(array);
    auto& list = together[ranks];
    if (list.empty()) order.push_back(std::move(ranks));
    list.push_back(desc);
  }
  if (order.empty()) return nullptr;  // this rank is no node of the arrays
  auto work = std::make_shared<Work>();
  for (const std::vector<int>& ranks : order) {
    ReflectCall some = call;
    some.arrays = together[ranks];
    const auto one = prepare_on(name, ranks, some, where);
    if (some.arrays.size() == call.arrays.size()) return one;
    work->operations.insert(work->operations.end(), one->operations.begin(), one->operations.end());
  }
  work->arrays = std::move(arrays);
  work->verified = true;  // its parts are
  world().keep(key, {}, work);
  return work;
}

void initialise(const char* name, ReflectCall call, Memory where) {
  std::shared_ptr<Work> work = prepare(name, call, where);
  for (std::size_t i = 1; i < call.arrays.size(); ++i) {
    Array::Place& place = array_of(call.arrays[i], "arrays").place(where);
    place.initialised = call;
    place.reflect = nullptr;
  }
  Array::Place& first = array_of(call.arrays[0], "arrays").place(where);
  first.initialised = std::move(call);
  first.reflect = std::move(work);
}

namespace {

// The plan if it stands ready. Null: it does not, or something is wrong, and `plan_of` sees to it.
Work* ready(int count, const xmp_desc_t arrays[], Memory where) {
  const Slot* const slot = arrays == nullptr ? nullptr : slot_of(arrays[0]);
  if (slot == nullptr || slot->object->kind != Array::kKind) return nullptr;
  auto& first = static_cast<Array&>(*slot->object);
  const Array::Place& place = first.place(where);
  Work* const work = place.reflect.get();
  if (work == nullptr || work->stale) return nullptr;
  const std::vector<xmp_desc_t>& meant = place.initialised->arrays;
  if (static_cast<std::size_t>(count) != meant.size()) return nullptr;
  for (std::size_t i = 1; i < meant.size(); ++i)
    if (arrays[i] != meant[i]) return nullptr;
  is_about(first);
  return work;
}

std::shared_ptr<Work>& plan_of(const char* name, int count, const xmp_desc_t arrays[], Memory where) {
  Array& first = array_of(given(arrays, "arrays")[0], "arrays");
  is_about(first);
  Array::Place& place = first.place(where);
  if (!place.initialised) [[unlikely]]
    refuse("array '{}' has no plan; call {} first", first.name,
           where == Memory::host ? "xmp_reflect_init" : "xacc_reflect_init");
  const auto& meant = place.initialised->arrays;
  if (static_cast<std::size_t>(count) != meant.size() || !std::equal(meant.begin(), meant.end(), arrays)) [[unlikely]]
    refuse(
        "array '{}' was initialised together with {} others, in another order or not with these; name the arrays "
        "as {} named them",
        first.name, meant.size() - 1, where == Memory::host ? "xmp_reflect_init" : "xacc_reflect_init");
  if (!place.reflect || place.reflect->stale) [[unlikely]]
    place.reflect = prepare(name, *place.initialised, where);
  return place.reflect;
}

}  // namespace

Work* initialised(const char* name, int count, const xmp_desc_t arrays[], Memory where) {
  if (Work* const work = ready(count, arrays, where); work != nullptr) [[likely]]
    return work;
  return plan_of(name, count, arrays, where).get();
}

std::shared_ptr<Work> shared_initialised(const char* name, int count, const xmp_desc_t arrays[], Memory where) {
  return plan_of(name, count, arrays, where);
}

const char* explain_reflect(const char* name, xmp_desc_t array, Memory where) {
  Array& one = array_of(array, "array");
  if (!one.place(where).initialised) refuse("array '{}' has no plan; call xmp_reflect_init first", one.name);
  const ReflectCall call = *one.place(where).initialised;
  const auto work = shared_initialised(name, static_cast<int>(call.arrays.size()), call.arrays.data(), where);
  text_for_explain.clear();
  if (work)
    for (const Operation& operation : work->operations) text_for_explain += operation.explain();
  return text_for_explain.c_str();
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
using tasuki::Memory;

extern "C" {

int xmp_reflect(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return guarded("xmp_reflect", [&] {
    const auto work = prepare("reflect", reflect_call(count, arrays, options), Memory::host);
    if (work) work->run();
  });
}

int xmp_reflect_async(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int id) {
  return guarded("xmp_reflect_async", [&] {
    const auto work = prepare("reflect", reflect_call(count, arrays, options), Memory::host);
    if (work) world().start(id, work);
  });
}

int xmp_reflect_init(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return guarded("xmp_reflect_init",
                 [&] { initialise("reflect_init", reflect_call(count, arrays, options), Memory::host); });
}

int xmp_reflect_do(int count, const xmp_desc_t arrays[]) {
  return guarded("xmp_reflect_do", [&] {
    Work* const work = initialised("reflect_do", count, arrays, Memory::host);
    if (work != nullptr) work->run();
  });
}

int xmp_reflect_do_async(int count, const xmp_desc_t arrays[], int id) {
  return guarded("xmp_reflect_do_async", [&] {
    const auto work = shared_initialised("reflect_do", count, arrays, Memory::host);
    if (work) world().start(id, work);
  });
}

int xmp_reduce_shadow(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return guarded("xmp_reduce_shadow", [&] {
    const auto work = prepare("reduce_shadow", reflect_call(count, arrays, options, true), Memory::host);
    if (work) work->run();
  });
}

const char* xmp_reflect_explain(xmp_desc_t array) {
  const char* text = nullptr;
  guarded("xmp_reflect_explain", [&] { text = explain_reflect("reflect_init", array, Memory::host); });
  return text;
}
}
