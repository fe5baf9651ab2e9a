// `nodes`, `template`, `distribute`, `template_fix`, `align`, `shadow`, and the memory of arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "objects.hpp"
#include "tasuki/dtype.hpp"
#include "tasuki/error.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/memory.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

static_assert(XMP_I8 == static_cast<int>(DType::i8) && XMP_U64 == static_cast<int>(DType::u64) &&
              XMP_F64 == static_cast<int>(DType::f64) && XMP_C128 == static_cast<int>(DType::c128));

void check_ndims(int ndims) {
  if (ndims < 1 || ndims > XMP_MAX_DIMS)
    refuse("argument 'ndims' is {}; it must be 1 to {}", ndims, static_cast<int>(XMP_MAX_DIMS));
}

// Extents of a node set among `available` ranks; the first may be left open.
std::vector<int> node_extents(int ndims, const std::int64_t extents[], int available) {
  check_ndims(ndims);
  given(extents, "extents");
  std::int64_t others = 1;
  for (int d = 0; d < ndims; ++d) {
    if (extents[d] == 0 && d == 0) continue;
    if (extents[d] < 1) refuse("argument 'extents' is {} in dimension {}; it must be at least 1", extents[d], d);
    others = std::min<std::int64_t>(others * std::min<std::int64_t>(extents[d], INT32_MAX), INT32_MAX);
  }
  std::vector<int> result;
  for (int d = 0; d < ndims; ++d) result.push_back(static_cast<int>(std::min<std::int64_t>(extents[d], INT32_MAX)));
  if (extents[0] == 0) {
    result[0] = static_cast<int>(available / others);
    if (result[0] == 0 || result[0] * others != available)
      refuse("the nodes' other extents are {}, which does not divide the {} nodes that there are", others, available);
  } else if (others > available) {
    refuse("the nodes have {} elements, but there are {} nodes", others, available);
  }
  return result;
}

int product(const std::vector<int>& extents) {
  int all = 1;
  for (const int extent : extents) all *= extent;
  return all;
}

// The ranks of a part of a node set.
std::vector<int> ranks_in(const NodeShape& of, const xmp_range section[]) {
  std::vector<Range> ranges;
  for (int d = 0; d < of.ndims(); ++d) {
    const std::int64_t extent = of.extents[static_cast<std::size_t>(d)];
    ranges.push_back(section == nullptr ? Range{0, extent} : range_from(section[d]));
    if (ranges.back().first < 0 || ranges.back().end > extent || ranges.back().count() == 0)
      refuse("the section is {} to {} in dimension {} of the nodes, which has {}; it must lie within, and not be empty",
             ranges.back().first, ranges.back().end - 1, d, extent);
  }
  std::vector<int> ranks;
  for (int n = 0; n < of.size(); ++n) {
    const Coordinates at = of.coordinates(n);
    bool inside = true;
    for (std::size_t d = 0; d < ranges.size(); ++d) {
      const Range& range = ranges[d];
      inside = inside && at[d] >= range.first && at[d] < range.end && (at[d] - range.first) % range.step == 0;
    }
    if (inside) ranks.push_back(of.ranks[static_cast<std::size_t>(n)]);
  }
  return ranks;
}

xmp_desc_t new_nodes(std::vector<int> extents, std::vector<int> ranks, int attr) {
  auto nodes = std::make_unique<Nodes>();
  ranks.resize(static_cast<std::size_t>(product(extents)));
  nodes->shape = {std::move(extents), std::move(ranks)};
  nodes->attr = attr;
  return add_object(std::move(nodes));
}

std::vector<Range> template_ranges(std::size_t ndims, const xmp_range ranges[]) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60;  // sums of two do not overflow
  std::vector<Range> result;
  for (std::size_t d = 0; d < ndims; ++d) {
    const xmp_range& one = ranges[d];
    if (one.end <= one.first)
      refuse("the template's range is empty in dimension {}: {} to {}", d, one.first, one.end - 1);
    if (one.first < -kFar || one.end > kFar)
      refuse("the template's range is {} to {} in dimension {}, which is too far from 0", one.first, one.end - 1, d);
    if (one.step != 0 && one.step != 1)
      refuse("the template's range has step {} in dimension {}; it must be 1", one.step, d);
    result.push_back({one.first, one.end});
  }
  return result;
}

// What the program has said; the nodes' dimensions are dealt out in order.
std::vector<Wanted> wanted_from(const Template& t, const NodeShape& nodes, const xmp_distribution distributions[]) {
  std::vector<Wanted> wanted;
  std::size_t node_dim = 0;
  for (std::size_t d = 0; d < t.ndims; ++d) {
    const xmp_distribution& one = distributions[d];
    if (one.format < XMP_NOT_DISTRIBUTED || one.format > XMP_GBLOCK)
      refuse("the format of dimension {} is {}, which is none", d, one.format);
    if (one.size < 0) refuse("the blocks of dimension {} have {} indices; they must have at least 1", d, one.size);
    Wanted& mine = wanted.emplace_back();
    mine.format = one.format;
    mine.size = one.size;
    if (one.format == XMP_NOT_DISTRIBUTED) continue;
    if (node_dim == nodes.extents.size())
      refuse("the template has more distributed dimensions than the nodes have dimensions, {}", nodes.extents.size());
    if (one.format == XMP_GBLOCK && one.map != nullptr)
      mine.map = std::vector<std::int64_t>(one.map, one.map + nodes.extents[node_dim]);
    ++node_dim;
  }
  if (node_dim != nodes.extents.size())
    refuse("the template has {} distributed dimensions, but the nodes have {} dimensions; they must be as many",
           node_dim, nodes.extents.size());
  return wanted;
}

// Once ranges and distributions are known.
std::vector<Spread> spreads_of(const Template& t, const std::vector<Range>& ranges, const std::vector<Wanted>& wanted,
                               const NodeShape& nodes) {
  std::vector<Spread> spreads;
  if (ranges.empty()) return spreads;
  for (const Wanted& one : wanted)
    if (one.format == XMP_GBLOCK && !one.map) return spreads;
  int node_dim = 0;
  for (std::size_t d = 0; d < t.ndims && d < wanted.size(); ++d) {
    const auto [first, end, step] = ranges[d];
    const Wanted& one = wanted[d];
    if (one.format == XMP_NOT_DISTRIBUTED) {
      spreads.push_back({Cut::whole(first, end), -1});
      continue;
    }
    const int parts = nodes.extents[static_cast<std::size_t>(node_dim)];
    try {
      const Cut cut = one.format == XMP_BLOCK    ? Cut::block(first, end, parts, one.size)
                      : one.format == XMP_CYCLIC ? Cut::cyclic(first, end, parts, one.size)
                                                 : Cut::gblock(first, end, *one.map);
      spreads.push_back({cut, node_dim++});
    } catch (const Error& error) {
      refuse("dimension {} of the template: {}", d, error.what());
    }
  }
  return spreads;
}

std::vector<ArrayDim> dims_from(const xmp_array_spec& spec) {
  check_ndims(spec.ndims);
  given(spec.extents, "spec->extents");
  std::vector<ArrayDim> dims;
  for (int d = 0; d < spec.ndims; ++d) {
    ArrayDim& dim = dims.emplace_back();
    dim.extent = spec.extents[d];
    dim.axis = spec.axis == nullptr ? d : spec.axis[d];
    dim.offset = spec.offset == nullptr ? 0 : spec.offset[d];
    if (dim.axis < XMP_COLLAPSED)
      refuse("spec->axis is {} for dimension {}; it must be a dimension of the template, or XMP_COLLAPSED", dim.axis,
             d);
  }
  return dims;
}

// Throws with the array's name.
template <class Body>
void naming(const std::string& name, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    refuse("array '{}': {}", name, error.what());
  }
}

void set_shape(Array& array, const NodeShape& nodes, const std::vector<ArrayDim>& dims, std::int64_t element_bytes) {
  naming(array.name, [&] {
    array.shape = ArrayShape(nodes, array.spreads, dims, element_bytes);
    array.number = nodes.number_of(world().rank());
    if (array.number >= 0) array.at = nodes.coordinates(array.number);
    (void)array.bytes();  // throws if they are too many
  });
}

// The nodes that own the indices of the template at which an array lies. `dims` are aligned with others.
NodeShape nodes_at(const Template& t, const std::int64_t fixed[], const std::vector<ArrayDim>& dims) {
  NodeShape nodes = t.nodes;
  for (std::size_t d = 0; d < t.ndims; ++d) {
    if (fixed[d] == XMP_ALONG) continue;
    const auto& [cut, node_dim] = t.fixed()[d];
    if (fixed[d] < cut.first() || fixed[d] >= cut.end())
      refuse("spec->fixed is {} for dimension {} of the template, which is {} to {}", fixed[d], d, cut.first(),
             cut.end() - 1);
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i].axis == static_cast<int>(d))
        refuse("dimension {} of the array is aligned with dimension {} of the template, for which spec->fixed is {}", i,
               d, fixed[d]);
    if (node_dim < 0) continue;
    const int owner = cut.owner(fixed[d]);
    std::vector<int> ranks;
    for (int n = 0; n < nodes.size(); ++n)
      if (nodes.coordinates(n)[static_cast<std::size_t>(node_dim)] == owner)
        ranks.push_back(nodes.ranks[static_cast<std::size_t>(n)]);
    nodes.extents[static_cast<std::size_t>(node_dim)] = 1;
    nodes.ranks = std::move(ranks);
  }
  return nodes;
}

void allocate(Array& array) {
  std::shared_ptr<std::byte> memory;
  if (array.bytes() > 0) memory = shared_alloc(world().context(), array.bytes());
  void* const at = memory.get();
  array.bind(Memory::host, at, std::move(memory));
}

std::int64_t next_serial() {
  static std::int64_t serial = 0;
  return ++serial;
}

}  // namespace

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
using tasuki::DType;
using tasuki::Memory;

extern "C" {

int xmp_nodes(xmp_desc_t* nodes, int ndims, const int64_t extents[]) {
  return guarded("xmp_nodes", [&] {
    given(nodes, "nodes");
    const NodeShape& all = world().entire();
    *nodes = new_nodes(node_extents(ndims, extents, all.size()), all.ranks, XMP_ENTIRE_NODES);
  });
}

int xmp_nodes_mapped(xmp_desc_t* nodes, int ndims, const int64_t extents[], const char* mapping,
                     const int64_t cells[]) {
  return guarded("xmp_nodes_mapped", [&] {
    const NodeShape& all = world().entire();
    NodeShape shape;
    std::string complaint;
    std::vector<std::int64_t> weighed;
    try {
      given(nodes, "nodes");
      given(mapping, "mapping");
      shape.extents = node_extents(ndims, extents, all.size());
      if (product(shape.extents) != all.size())
        refuse("the nodes have {} elements, but there are {} nodes, of which each needs a place",
               product(shape.extents), all.size());
      for (int d = 0; d < ndims; ++d) {
        constexpr std::int64_t kAlike = 64;  // cells of each node in each dimension
        weighed.push_back(cells == nullptr ? kAlike * shape.extents[static_cast<std::size_t>(d)] : cells[d]);
        if (weighed.back() < 1) refuse("argument 'cells' is {} in dimension {}; it must be at least 1", cells[d], d);
      }
    } catch (const tasuki::Error& error) {
      complaint = error.what();
    }
    agree(world().context(), "nodes", complaint);
    const tasuki::Grid grid(world().context(), weighed, {.split = shape.extents, .mapping = mapping});
    shape.ranks.resize(static_cast<std::size_t>(all.size()));
    for (int n = 0; n < all.size(); ++n) shape.ranks[static_cast<std::size_t>(n)] = grid.rank_at(shape.coordinates(n));
    *nodes = new_nodes(std::move(shape.extents), std::move(shape.ranks), XMP_ENTIRE_NODES);
  });
}

int xmp_nodes_of(xmp_desc_t* nodes, int ndims, const int64_t extents[], xmp_desc_t of, const xmp_range section[]) {
  return guarded("xmp_nodes_of", [&] {
    given(nodes, "nodes");
    std::vector<int> ranks = ranks_in(of == nullptr ? world().executing() : nodes_of(of, "of").shape, section);
    std::vector<int> sizes = node_extents(ndims, extents, static_cast<int>(ranks.size()));
    if (product(sizes) != static_cast<int>(ranks.size()))
      refuse("the nodes have {} elements, but the set that they are has {}", product(sizes), ranks.size());
    *nodes = new_nodes(std::move(sizes), std::move(ranks), of == nullptr ? XMP_EXECUTING_NODES : XMP_EQUIVALENCE_NODES);
  });
}

int xmp_template(xmp_desc_t* template_, int ndims, const xmp_range ranges[]) {
  return guarded("xmp_template", [&] {
    world();
    given(template_, "template_");
    check_ndims(ndims);
    auto made = std::make_unique<Template>();
    made->ndims = static_cast<std::size_t>(ndims);
    if (ranges != nullptr) made->ranges = template_ranges(made->ndims, ranges);
    *template_ = add_object(std::move(made));
  });
}

int xmp_distribute(xmp_desc_t template_, const xmp_distribution distributions[], xmp_desc_t nodes) {
  return guarded("xmp_distribute", [&] {
    Template& t = template_of(template_, "template_");
    const Nodes& onto = nodes_of(nodes, "nodes");
    if (!t.wanted.empty()) refuse("the template is distributed already");
    auto wanted = wanted_from(t, onto.shape, given(distributions, "distributions"));
    t.spreads = spreads_of(t, t.ranges, wanted, onto.shape);
    t.wanted = std::move(wanted);
    t.nodes_desc = nodes;
    t.nodes = onto.shape;
  });
}

int xmp_template_fix(xmp_desc_t template_, const xmp_range ranges[], const xmp_distribution distributions[]) {
  return guarded("xmp_template_fix", [&] {
    Template& t = template_of(template_, "template_");
    if (t.wanted.empty()) refuse("the template is not distributed; call xmp_distribute first");
    if (!t.spreads.empty()) refuse("the template is fixed already");
    if (ranges != nullptr && !t.ranges.empty()) refuse("the template's ranges are fixed already; pass null for them");
    auto now = ranges == nullptr ? t.ranges : template_ranges(t.ndims, ranges);
    if (now.empty()) refuse("the template's ranges are still open; give argument 'ranges'");
    auto wanted = distributions == nullptr ? t.wanted : wanted_from(t, t.nodes, distributions);
    for (std::size_t d = 0; d < t.ndims; ++d) {
      if (wanted[d].format != t.wanted[d].format)
        refuse("dimension {} of the template is distributed in another format", d);
      if (wanted[d].format == XMP_GBLOCK && !wanted[d].map)
        refuse("the gblock map of dimension {} is still open; give it in argument 'distributions'", d);
    }
    t.spreads = spreads_of(t, now, wanted, t.nodes);
    t.ranges = std::move(now);
    t.wanted = std::move(wanted);
  });
}

int xmp_array(xmp_desc_t* array, const xmp_array_spec* spec, xmp_desc_t template_) {
  return guarded("xmp_array", [&] {
    given(array, "array");
    given(spec, "spec");
    auto made = std::make_unique<Array>();
    made->name = spec->name == nullptr ? "array" : spec->name;
    if (made->name.empty()) refuse("spec->name is empty; plans and errors name the array");
    made->type = static_cast<DType>(spec->type);
    const bool bytes = spec->type == XMP_BYTES;
    if (!bytes && (spec->type < XMP_I8 || spec->type > XMP_C128 || (spec->type > XMP_F64 && spec->type < XMP_C64)))
      refuse("spec->type is {}, which is no type of elements", spec->type);
    const std::int64_t element = bytes ? spec->element_bytes : tasuki::size_of(made->type);
    std::vector<ArrayDim> dims = dims_from(*spec);
    NodeShape nodes = world().executing();
    made->template_desc = template_;
    if (template_ != nullptr) {
      const Template& t = template_of(template_, "template_");
      made->spreads = t.fixed();
      nodes = spec->fixed == nullptr ? t.nodes : nodes_at(t, spec->fixed, dims);
      for (std::size_t d = 0; d < t.ndims && spec->fixed != nullptr; ++d)
        if (spec->fixed[d] != XMP_ALONG) made->fixed_axes.push_back(static_cast<int>(d));
    } else {
      for (ArrayDim& dim : dims) dim.axis = XMP_COLLAPSED;
    }
    set_shape(*made, nodes, dims, element);
    made->serial = next_serial();
    *array = add_object(std::move(made));
  });
}

int xmp_shadow(xmp_desc_t array, const xmp_width widths[]) {
  return guarded("xmp_shadow", [&] {
    Array& one = array_of(array, "array");
    given(widths, "widths");
    for (const auto& place : one.places)
      if (place.generation > 0) refuse("array '{}' has memory already; declare its shadow first", one.name);
    std::vector<ArrayDim> dims;
    for (int d = 0; d < one.shape.ndims(); ++d) {
      ArrayDim& dim = dims.emplace_back(one.shape.dim(d));
      dim.full_shadow = widths[d].below == -1 && widths[d].above == -1;
      dim.shadow = dim.full_shadow ? Layers{} : Layers{widths[d].below, widths[d].above};
    }
    naming(one.name, [&] {
      ArrayShape shape = one.shape;
      shape.set_shadow(dims);
      if (one.number >= 0) (void)shape.bytes(one.at);
      one.shape = std::move(shape);
    });
  });
}

int xmp_allocate(xmp_desc_t array, void** memory) {
  return guarded("xmp_allocate", [&] {
    Array& one = array_of(array, "array");
    allocate(one);
    if (memory != nullptr) *memory = one.place(Memory::host).memory;
  });
}

void* xmp_malloc(xmp_desc_t array, ...) {
  void* memory = nullptr;
  va_list extents;
  va_start(extents, array);
  guarded("xmp_malloc", [&] {
    Array& one = array_of(array, "array");
    std::vector<ArrayDim> dims;
    bool same = true;
    for (int d = 0; d < one.shape.ndims(); ++d) {
      ArrayDim& dim = dims.emplace_back(one.shape.dim(d));
      const int extent = va_arg(extents, int);
      same = same && dim.extent == extent;
      dim.extent = extent;
    }
    world().forget(one.serial);
    if (!same) {
      const NodeShape nodes = one.shape.nodes();
      set_shape(one, nodes, dims, one.shape.element_bytes());
      one.bind(Memory::device, nullptr, nullptr);  // which has the old extents
    }
    allocate(one);
    memory = one.place(Memory::host).memory;
  });
  va_end(extents);
  return memory;
}

int xmp_bind(xmp_desc_t array, void* memory) {
  return guarded("xmp_bind", [&] {
    Array& one = array_of(array, "array");
    if (one.bytes() > 0) given(memory, "memory");
    one.bind(Memory::host, memory, nullptr);
  });
}

int xmp_free(xmp_desc_t* desc) {
  return guarded("xmp_free", [&] {
    remove_object(*given(desc, "desc"));
    *desc = nullptr;
  });
}
}
