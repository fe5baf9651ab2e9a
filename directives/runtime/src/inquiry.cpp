// The language's inquiry functions. Their dimensions and numbers count from 1.
#include <mpi.h>
#include <algorithm>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "guard.hpp"
#include "objects.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

int dim_from(int dim, int ndims) {
  if (dim < 1 || dim > ndims) refuse("argument 'dim' is {}; it must be 1 to {}", dim, ndims);
  return dim - 1;
}

// For the language's `int`.
int as_int(std::int64_t value) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    refuse("the value {} does not fit into an int; use xmp_get_view", value);
  return static_cast<int>(value);
}

template <class T>
void answer(const char* argument, T* where, T value) {
  *given(where, argument) = value;
}

// A question about one dimension of an array.
template <class Ask>
int about_array(const char* call, xmp_desc_t array, int dim, const char* argument, int* where, Ask&& ask) {
  return guarded(call, [&] {
    const Array& one = array_of(array, "array");
    answer(argument, where, as_int(ask(one, dim_from(dim, one.shape.ndims()))));
  });
}

template <class Ask>
int about_template(const char* call, xmp_desc_t desc, int dim, const char* argument, int* where, Ask&& ask) {
  return guarded(call, [&] {
    const Template& t = template_of(desc, "template_");
    answer(argument, where, as_int(ask(t.fixed()[static_cast<std::size_t>(dim_from(dim, static_cast<int>(t.ndims)))])));
  });
}

int stored(const Array& array, int d) {
  return array.number < 0 ? 0 : as_int(array.shape.stored(d, array.shape.part(d, array.at)));
}

}  // namespace

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)

extern "C" {

int xmp_num_nodes(void) {
  int count = 0;
  guarded("xmp_num_nodes", [&] { count = world().executing().size(); });
  return count;
}
int xmpc_node_num(void) {
  int number = -1;
  guarded("xmpc_node_num", [&] { number = world().executing().number_of(world().rank()); });
  return number;
}
int xmp_node_num(void) {
  return xmpc_node_num() + 1;
}
int xmp_all_num_nodes(void) {
  int count = 0;
  guarded("xmp_all_num_nodes", [&] { count = world().size(); });
  return count;
}
int xmpc_all_node_num(void) {
  int number = -1;
  guarded("xmpc_all_node_num", [&] { number = world().rank(); });
  return number;
}
int xmp_all_node_num(void) {
  return xmpc_all_node_num() + 1;
}

double xmp_wtime(void) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double xmp_wtick(void) {
  using Period = std::chrono::steady_clock::period;
  return static_cast<double>(Period::num) / static_cast<double>(Period::den);
}

MPI_Comm xmp_get_mpi_comm(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  guarded("xmp_get_mpi_comm", [&] { comm = world().context(world().executing().ranks).comm(); });
  return comm;
}

int xmp_nodes_ndims(xmp_desc_t nodes, int* ndims) {
  return guarded("xmp_nodes_ndims", [&] { answer("ndims", ndims, nodes_of(nodes, "nodes").shape.ndims()); });
}
int xmp_nodes_index(xmp_desc_t nodes, int dim, int* index) {
  return guarded("xmp_nodes_index", [&] {
    const NodeShape& shape = nodes_of(nodes, "nodes").shape;
    const auto d = static_cast<std::size_t>(dim_from(dim, shape.ndims()));
    const int number = shape.number_of(world().rank());
    answer("index", index, number < 0 ? static_cast<int>(XMP_UNDEFINED) : shape.coordinates(number)[d] + 1);
  });
}
int xmp_nodes_size(xmp_desc_t nodes, int dim, int* size) {
  return guarded("xmp_nodes_size", [&] {
    const NodeShape& shape = nodes_of(nodes, "nodes").shape;
    answer("size", size, shape.extents[static_cast<std::size_t>(dim_from(dim, shape.ndims()))]);
  });
}
int xmp_nodes_attr(xmp_desc_t nodes, int* attr) {
  return guarded("xmp_nodes_attr", [&] { answer("attr", attr, nodes_of(nodes, "nodes").attr); });
}
int xmp_node_number(xmp_desc_t nodes, const int index[]) {
  int number = -1;
  guarded("xmp_node_number", [&] {
    const NodeShape& shape = nodes_of(nodes, "nodes").shape;
    given(index, "index");
    Coordinates at{};
    for (std::size_t d = 0; d < shape.extents.size(); ++d) {
      if (index[d] < 0 || index[d] >= shape.extents[d]) return;
      at[d] = index[d];
    }
    number = shape.number(at);
  });
  return number;
}

int xmp_template_fixed(xmp_desc_t template_, int* fixed) {
  return guarded("xmp_template_fixed",
                 [&] { answer("fixed", fixed, template_of(template_, "template_").spreads.empty() ? 0 : 1); });
}
int xmp_template_ndims(xmp_desc_t template_, int* ndims) {
  return guarded("xmp_template_ndims",
                 [&] { answer("ndims", ndims, static_cast<int>(template_of(template_, "template_").ndims)); });
}
int xmp_template_lbound(xmp_desc_t template_, int dim, int* lower) {
  return about_template("xmp_template_lbound", template_, dim, "lower", lower,
                        [](const Spread& spread) { return spread.cut.first(); });
}
int xmp_template_ubound(xmp_desc_t template_, int dim, int* upper) {
  return about_template("xmp_template_ubound", template_, dim, "upper", upper,
                        [](const Spread& spread) { return spread.cut.end() - 1; });
}
int xmp_dist_format(xmp_desc_t template_, int dim, int* format) {
  return about_template("xmp_dist_format", template_, dim, "format", format,
                        [](const Spread& spread) { return static_cast<std::int64_t>(spread.cut.format()); });
}
int xmp_dist_blocksize(xmp_desc_t template_, int dim, int* size) {
  return about_template("xmp_dist_blocksize", template_, dim, "size", size, [](const Spread& spread) {
    const Format format = spread.cut.format();
    return format == Format::block || format == Format::cyclic ? spread.cut.size() : std::int64_t{XMP_UNDEFINED};
  });
}
int xmp_dist_gblockmap(xmp_desc_t template_, int dim, int map[]) {
  return guarded("xmp_dist_gblockmap", [&] {
    const Template& t = template_of(template_, "template_");
    const Cut& cut = t.fixed()[static_cast<std::size_t>(dim_from(dim, static_cast<int>(t.ndims)))].cut;
    given(map, "map");
    if (cut.format() != Format::gblock) refuse("dimension {} of the template is not distributed by gblock", dim);
    for (int part = 0; part < cut.parts(); ++part) map[part] = as_int(cut.begin_of(part + 1) - cut.begin_of(part));
  });
}
int xmp_dist_nodes(xmp_desc_t template_, xmp_desc_t* nodes) {
  return guarded("xmp_dist_nodes", [&] {
    const Template& t = template_of(template_, "template_");
    (void)t.fixed();
    answer("nodes", nodes, t.nodes_desc);
  });
}
int xmp_dist_axis(xmp_desc_t template_, int dim, int* axis) {
  return about_template("xmp_dist_axis", template_, dim, "axis", axis, [](const Spread& spread) {
    return std::int64_t{spread.node_dim < 0 ? XMP_UNDEFINED : spread.node_dim + 1};
  });
}

int xmp_align_axis(xmp_desc_t array, int dim, int* axis) {
  return about_array("xmp_align_axis", array, dim, "axis", axis, [](const Array& one, int d) {
    const int of_template = one.shape.dim(d).axis;
    return std::int64_t{of_template < 0 ? XMP_UNDEFINED : of_template + 1};
  });
}
int xmp_align_offset(xmp_desc_t array, int dim, int* offset) {
  return about_array("xmp_align_offset", array, dim, "offset", offset, [](const Array& one, int d) {
    return one.shape.dim(d).axis < 0 ? std::int64_t{XMP_UNDEFINED} : one.shape.dim(d).offset;
  });
}
int xmp_align_replicated(xmp_desc_t array, int dim, int* replicated) {
  return guarded("xmp_align_replicated", [&] {
    const Array& one = array_of(array, "array");
    if (one.template_desc == nullptr) refuse("array '{}' is not aligned with a template", one.name);
    const int of_template = dim_from(dim, static_cast<int>(one.spreads.size()));
    bool named = std::find(one.fixed_axes.begin(), one.fixed_axes.end(), of_template) != one.fixed_axes.end();
    for (int d = 0; d < one.shape.ndims(); ++d) named = named || one.shape.dim(d).axis == of_template;
    answer("replicated", replicated, named ? 0 : 1);
  });
}
int xmp_align_template(xmp_desc_t array, xmp_desc_t* template_) {
  return guarded("xmp_align_template", [&] { answer("template_", template_, array_of(array, "array").template_desc); });
}

int xmp_array_ndims(xmp_desc_t array, int* ndims) {
  return guarded("xmp_array_ndims", [&] { answer("ndims", ndims, array_of(array, "array").shape.ndims()); });
}
int xmp_array_lshadow(xmp_desc_t array, int dim, int* width) {
  return about_array("xmp_array_lshadow", array, dim, "width", width, [](const Array& one, int d) {
    return one.shape.dim(d).full_shadow ? -1 : one.shape.dim(d).shadow.below;
  });
}
int xmp_array_ushadow(xmp_desc_t array, int dim, int* width) {
  return about_array("xmp_array_ushadow", array, dim, "width", width, [](const Array& one, int d) {
    return one.shape.dim(d).full_shadow ? -1 : one.shape.dim(d).shadow.above;
  });
}
int xmp_array_lbound(xmp_desc_t array, int dim, int* lower) {
  return about_array("xmp_array_lbound", array, dim, "lower", lower, [](const Array&, int) { return std::int64_t{0}; });
}
int xmp_array_ubound(xmp_desc_t array, int dim, int* upper) {
  return about_array("xmp_array_ubound", array, dim, "upper", upper,
                     [](const Array& one, int d) { return one.shape.dim(d).extent - 1; });
}
int xmp_array_gsize(xmp_desc_t array, int dim, int* size) {
  return about_array("xmp_array_gsize", array, dim, "size", size,
                     [](const Array& one, int d) { return one.shape.dim(d).extent; });
}
int xmp_array_lsize(xmp_desc_t array, int dim, int* size) {
  return about_array("xmp_array_lsize", array, dim, "size", size,
                     [](const Array& one, int d) { return std::int64_t{stored(one, d)}; });
}
int xmp_array_laddr(xmp_desc_t array, void** address) {
  return guarded("xmp_array_laddr",
                 [&] { answer("address", address, array_of(array, "array").place(tasuki::Memory::host).memory); });
}
int xmp_array_lead_dim(xmp_desc_t array, int size[]) {
  return guarded("xmp_array_lead_dim", [&] {
    const Array& one = array_of(array, "array");
    given(size, "size");
    for (int d = 0; d < one.shape.ndims(); ++d) size[d] = stored(one, d);
  });
}
int xmp_array_gtol(xmp_desc_t array, const int global[], int local[]) {
  return guarded("xmp_array_gtol", [&] {
    const Array& one = array_of(array, "array");
    given(global, "global");
    given(local, "local");
    std::vector<int> found;
    for (int d = 0; d < one.shape.ndims(); ++d) {
      const std::int64_t at = xmp_local_index(array, d, global[d]);
      if (at < 0)
        refuse("array '{}': index {} of dimension {} is not in the memory of this node", one.name, global[d], d);
      found.push_back(as_int(at));
    }
    for (std::size_t d = 0; d < found.size(); ++d) local[d] = found[d];
  });
}
int xmp_array_owner(xmp_desc_t array, const int global[], int* node) {
  return guarded("xmp_array_owner", [&] {
    const Array& one = array_of(array, "array");
    given(global, "global");
    Coordinates at{};
    for (int d = 0; d < one.shape.ndims(); ++d) {
      if (global[d] < 0 || global[d] >= one.shape.dim(d).extent)
        refuse("array '{}' has no index {} in dimension {}, which has {}", one.name, global[d], d,
               one.shape.dim(d).extent);
      if (one.shape.distributed(d)) at[static_cast<std::size_t>(one.shape.node_dim(d))] = one.shape.owner(d, global[d]);
    }
    answer("node", node, one.shape.nodes().number(at) + 1);
  });
}
}
