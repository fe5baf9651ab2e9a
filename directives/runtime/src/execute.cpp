// `loop`, `task`, and where elements are: all local.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "loops.hpp"
#include "objects.hpp"
#include "sets.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

void check_dim(int dim, int ndims) {
  if (dim < 0 || dim >= ndims) refuse("argument 'dim' is {}; it must be 0 to {}", dim, ndims - 1);
}

xmp_range for_caller(const Range& range) {
  return {range.first, range.end, range.step};
}

}  // namespace

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)

extern "C" {

int xmp_loop_begin(xmp_loop* loop, xmp_desc_t template_, int dim, xmp_range range) {
  return guarded("xmp_loop_begin", [&] {
    *given(loop, "loop") = {};  // without pieces, if what follows fails
    const Template& t = template_of(template_, "template_");
    check_dim(dim, static_cast<int>(t.ndims));
    (void)t.fixed();
    const Range all = range_from(range);
    loop->all = for_caller(all);
    loop->first = loop->end = all.first;
    loop->dim = dim;
    loop->step = 0;  // no piece yet
    loop->template_ = template_;
  });
}

int xmp_loop_next(xmp_loop* loop) {
  int any = 0;
  guarded("xmp_loop_next", [&] {
    given(loop, "loop");
    if (loop->template_ == nullptr) return;
    const Template& t = template_of(loop->template_, "loop->template_");
    const Spread& spread = t.fixed()[static_cast<std::size_t>(loop->dim)];
    Coordinates at{};
    if (!coordinates_in(t.nodes, at)) return;
    const Range all = range_from(loop->all);
    // What single indices dealt out in turn leave is one piece.
    const bool whole = loop->step != 0 && spread.cut.format() == Format::cyclic && spread.cut.size() == 1;
    const Range piece = next_piece(spread.cut, part_of(spread, at), all, whole ? all.end : loop->end);
    loop->first = piece.first;
    loop->end = piece.end;
    loop->step = piece.step;
    any = piece.count() > 0 ? 1 : 0;
  });
  return any;
}

int xmp_loop_nests(xmp_desc_t template_, const xmp_range ranges[], int edge, const xmp_width widths[],
                   xmp_nests* nests) {
  return guarded("xmp_loop_nests", [&] {
    const Template& t = template_of(template_, "template_");
    given(nests, "nests")->count = 0;
    if (edge != XMP_EXPAND && edge != XMP_MARGIN)
      refuse("argument 'edge' is {}; it must be XMP_EXPAND or XMP_MARGIN", edge);
    Nest loop;
    std::vector<Cut> cuts;
    std::vector<int> parts;
    std::vector<Layers> layers;
    Coordinates at{};
    if (!coordinates_in(t.nodes, at)) return;
    for (std::size_t d = 0; d < t.ndims; ++d) {
      const Spread& spread = t.fixed()[d];
      loop.push_back(ranges == nullptr ? Range{spread.cut.first(), spread.cut.end()} : range_from(ranges[d]));
      cuts.push_back(spread.cut);
      parts.push_back(part_of(spread, at));
      if (widths == nullptr) continue;
      const auto [below, above] = widths[d];
      constexpr std::int64_t kMost = std::int64_t{1} << 40;  // as of shadows
      if (std::max(below, above) > kMost || std::min(below, above) < -kMost)
        refuse("the width is {}:{} in dimension {}; it must be {} to {}", below, above, d, -kMost, kMost);
      layers.push_back({below, above});
    }
    const std::vector<Nest> found =
        nests_of(cuts, parts, loop, edge == XMP_EXPAND ? Edge::expand : Edge::margin, layers);
    for (const Nest& nest : found) {
      for (std::size_t d = 0; d < nest.size(); ++d) nests->ranges[nests->count][d] = for_caller(nest[d]);
      ++nests->count;
    }
  });
}

int xmp_task_begin(xmp_desc_t on, const xmp_range section[], int* mine) {
  return guarded("xmp_task_begin", [&] {
    *given(mine, "mine") = 0;
    NodeShape nodes = nodes_in(on, section);
    const NodeShape& now = world().executing();
    for (const int rank : nodes.ranks)
      if (now.number_of(rank) < 0)
        refuse("rank {} is a node of the task, but it is not one of the nodes that execute it", rank);
    if (nodes.number_of(world().rank()) < 0) return;
    world().enter(std::move(nodes));
    *mine = 1;
  });
}

int xmp_task_end(void) {
  return guarded("xmp_task_end", [] { world().leave(); });
}

int xmp_get_view(xmp_desc_t array, xmp_view* view) {
  return guarded("xmp_get_view", [&] {
    Array& one = array_of(array, "array");
    *given(view, "view") = {};
    view->ndims = one.shape.ndims();
    if (one.number < 0) return;
    view->data = one.place(tasuki::Memory::host).memory;
    view->device = one.place(tasuki::Memory::device).memory;
    view->bytes = one.bytes();
    const Indices strides = one.shape.strides(one.at);
    for (int d = 0; d < view->ndims; ++d) {
      const int part = one.shape.part(d, one.at);
      view->own[d] = one.shape.owned(d, part);
      view->extents[d] = one.shape.stored(d, part);
      view->strides[d] = strides[static_cast<std::size_t>(d)];
      if (one.shape.cut(d).contiguous()) {
        view->first[d] = one.shape.begin_of(d, part);
        view->base[d] = -one.shape.local(d, part, 0);
      } else if (view->own[d] > 0) {
        view->first[d] = one.shape.global(d, part, 0);
      }
    }
  });
}

int64_t xmp_local_bytes(xmp_desc_t array) {
  std::int64_t bytes = 0;
  guarded("xmp_local_bytes", [&] { bytes = array_of(array, "array").bytes(); });
  return bytes;
}

int64_t xmp_local_index(xmp_desc_t array, int dim, int64_t global) {
  std::int64_t index = -1;
  guarded("xmp_local_index", [&] {
    const Array& one = array_of(array, "array");
    check_dim(dim, one.shape.ndims());
    if (one.number < 0) return;
    const int part = one.shape.part(dim, one.at);
    const bool contiguous = one.shape.cut(dim).contiguous();
    if (!contiguous && (global < 0 || global >= one.shape.dim(dim).extent || one.shape.owner(dim, global) != part))
      return;
    const std::int64_t local = one.shape.local(dim, part, global);
    if (local >= 0 && local < one.shape.stored(dim, part)) index = local;
  });
  return index;
}

int64_t xmp_global_index(xmp_desc_t array, int dim, int64_t local) {
  std::int64_t index = -1;
  guarded("xmp_global_index", [&] {
    const Array& one = array_of(array, "array");
    check_dim(dim, one.shape.ndims());
    if (one.number < 0 || local < 0) return;
    const int part = one.shape.part(dim, one.at);
    const std::int64_t owned = one.shape.owned(dim, part);
    const std::int64_t first =
        one.shape.dim(dim).full_shadow ? one.shape.begin_of(dim, part) : one.shape.dim(dim).shadow.below;
    if (local >= first && local < first + owned) index = one.shape.global(dim, part, local);
  });
  return index;
}
}
