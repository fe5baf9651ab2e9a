// The class of halos. What one rank asks is in shapes/halo.hpp.
#include "tasuki/halo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fields/field_storage.hpp"
#include "fields/placement_of.hpp"
#include "operations/description.hpp"
#include "shapes/halo.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

FieldOfRank field_of_rank(const HaloField& entry, const FieldBase& first, bool needs_cells) {
  const FieldBase& field = entry.field;
  const FieldBase::Storage& storage = *FieldAccess::storage(field);
  FieldOfRank own;
  own.shape = {field.name(),   field.element_bytes(), field.dtype(), entry.width,
               field.shadow(), storage.pad,           storage.orders};
  own.placement = &placement_of(field.grid());
  own.number = storage.number;
  own.current = field.current();
  own.freed = storage.freed;
  own.foreign = &runtime_of(field.grid().context()) != &runtime_of(first.grid().context());
  own.bytes = storage.bytes;
  own.copies = storage.memory;
  if (needs_cells) own.cells = all_cells(field);
  return own;
}

std::vector<Edges> edges_of(const std::vector<HaloField>& fields, const HaloOptions& options) {
  std::vector<std::string> names;
  for (const HaloField& entry : fields) names.push_back(entry.field.name());
  return edges_from(options.edges, names);
}

UserBuffer buffer_of(const FieldBase& field, bool alternating) {
  const FieldBase::Storage& storage = *FieldAccess::storage(field);
  UserBuffer buffer;
  buffer.bytes = field.bytes();
  buffer.memory = storage.memory;
  buffer.where = storage.where;
  if (field.copies() > 1) {
    buffer.current = &storage.current;
    buffer.alternating = alternating;
  }
  return buffer;
}

// The operation uses the fields as long as it lives.
void keep(Description& d, const std::vector<HaloField>& fields) {
  d.keep.reserve(d.keep.size() + fields.size());  // so that nothing fails between counting a user and keeping it
  for (const auto& [field, width] : fields) {
    const auto& storage = FieldAccess::storage(field);
    ++storage->users;
    d.keep.emplace_back(static_cast<void*>(storage.get()), [storage](void*) { --storage->users; });
  }
}

// Where the fields' cells lie, if all fields are in C order.
std::vector<FieldCells> cells_of(const std::vector<FieldOfRank>& own, const std::vector<HaloField>& fields, int rank) {
  std::vector<FieldCells> cells;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (own[f].shape.orders) return {};
    cells.push_back({own[f].shape.element_bytes, memory_extents(*own[f].placement, own[f].shape, rank),
                     fields[f].field.owned(), own[f].shape.shadow, own[f].shape.width});
  }
  return cells;
}

Description describe(const std::vector<HaloField>& fields, const HaloOptions& options) {
  if (fields.empty()) throw Error("Halo: argument 'fields' is empty; give at least one field");
  const FieldBase& first = fields[0].field;
  const bool in_any_order = std::ranges::any_of(
      fields, [](const HaloField& entry) { return FieldAccess::storage(entry.field)->orders != nullptr; });
  std::vector<FieldOfRank> own;
  std::vector<UserBuffer> buffers;
  for (const HaloField& entry : fields) {
    own.push_back(field_of_rank(entry, first, in_any_order));
    buffers.push_back(buffer_of(entry.field, options.alternating));
  }
  const Context& context = first.grid().context();
  std::vector<FieldCells> cells = cells_of(own, fields, context.rank());
  HaloOfRank shape(context.rank(), std::move(own), options.corners, options.reverse, options.alternating, options.cuts,
                   options.edges);
  Description d = description_with(context, shape, std::move(buffers));
  if (d.agreement.complains()) return d;
  d.attempt.locally("keeping the fields of a halo", [&] {
    d.cells = std::move(cells);
    keep(d, fields);
  });
  return d;
}

}  // namespace

Halo::Halo(const std::vector<HaloField>& fields, const HaloOptions& options) {
  Description description = describe(fields, options);
  state_ = std::make_shared<State>(fields[0].field.grid().context(), std::move(description), options);
  const std::vector<Edges> edges = edges_of(fields, options);
  for (const auto& [field, width] : fields) {
    Reach& reach = reaches_.emplace_back(Reach{FieldAccess::storage(field)->number, width, Width(0)});
    const Edges& mine = edges[reaches_.size() - 1];
    const auto mirrored = [](const Edge& edge, std::int64_t cells) {
      return edge.mirror == Edge::Mirror::none || cells == 0 ? 0 : cells + (edge.mirror == Edge::Mirror::cell ? 1 : 0);
    };
    for (std::size_t d = 0; d < kMaxDims; ++d) {
      reach.mirrored.lo[d] = mirrored(mine.lo[d], width.lo[d]);
      reach.mirrored.hi[d] = mirrored(mine.hi[d], width.hi[d]);
    }
  }
}

Halo::Reach Halo::reach(const FieldBase& field) const {
  Reach widest{-1, Width(0), Width(0)};
  const auto widen = [](Width& all, const Width& one) {
    for (std::size_t d = 0; d < kMaxDims; ++d) {
      all.lo[d] = std::max(all.lo[d], one.lo[d]);
      all.hi[d] = std::max(all.hi[d], one.hi[d]);
    }
  };
  for (const Reach& one : reaches_) {
    if (one.number == FieldAccess::storage(field)->number) return one;
    widen(widest.width, one.width);
    widen(widest.mirrored, one.mirrored);
  }
  return widest;
}

void overlap(Halo& halo, const FieldBase& field, const Width& width, const std::function<void(const Box&)>& compute,
             Narrow narrow) {
  const Grid& grid = field.grid();
  const Halo::Reach reach = halo.reach(field);
  for (int d = 0; d < grid.ndims() && narrow == Narrow::refused; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const bool alone = grid.split(d) == 1 && !grid.periodic(d);
    // What is sent downwards fills the upper shadow of the neighbour below.
    const std::int64_t below = std::max(alone ? 0 : reach.width.hi[i], reach.mirrored.lo[i]);
    const std::int64_t above = std::max(alone ? 0 : reach.width.lo[i], reach.mirrored.hi[i]);
    if (width.lo[i] >= below && width.hi[i] >= above) continue;
    throw Error(fmt::format(
        "overlap: rank {}: argument 'width' is {}/{} (below/above) in dimension {}, but the halo sends {}/{} "
        "cells there, which would not all be computed before it starts; give a width of at least {}/{}, or "
        "say Narrow::meant",
        grid.context().rank(), width.lo[i], width.hi[i], d, below, above, below, above));
  }
  for (const Box& box : field.boundary(width)) compute(box);
  halo.start();
  const Box interior = field.interior(width);
  if (!interior.empty()) compute(interior);
  halo.wait();
}

}  // namespace tasuki
