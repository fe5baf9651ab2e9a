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
  HaloOfRank shape(context.rank(), std::move(own), options.corners, options.reverse, options.alternating, options.cuts);
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
  for (const auto& [field, width] : fields) widths_.emplace_back(FieldAccess::storage(field)->number, width);
  state_ = std::make_shared<State>(fields[0].field.grid().context(), std::move(description), options);
}

Width Halo::reach(const FieldBase& field) const {
  Width widest;
  for (const auto& [number, width] : widths_) {
    if (number == FieldAccess::storage(field)->number) return width;
    for (std::size_t d = 0; d < kMaxDims; ++d) {
      widest.lo[d] = std::max(widest.lo[d], width.lo[d]);
      widest.hi[d] = std::max(widest.hi[d], width.hi[d]);
    }
  }
  return widest;
}

void overlap(Halo& halo, const FieldBase& field, const Width& width, const std::function<void(const Box&)>& compute,
             Narrow narrow) {
  const Grid& grid = field.grid();
  const Width reach = halo.reach(field);
  for (int d = 0; d < grid.ndims() && narrow == Narrow::refused; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (grid.split(d) == 1 && !grid.periodic(d)) continue;
    // What is sent downwards fills the upper shadow of the neighbour below.
    if (width.lo[i] >= reach.hi[i] && width.hi[i] >= reach.lo[i]) continue;
    throw Error(fmt::format(
        "overlap: rank {}: argument 'width' is {}/{} (below/above) in dimension {}, but the halo sends {}/{} "
        "cells there, which would not all be computed before it starts; give a width of at least {}/{}, or "
        "say Narrow::meant",
        grid.context().rank(), width.lo[i], width.hi[i], d, reach.hi[i], reach.lo[i], reach.hi[i], reach.lo[i]));
  }
  for (const Box& box : field.boundary(width)) compute(box);
  halo.start();
  const Box interior = field.interior(width);
  if (!interior.empty()) compute(interior);
  halo.wait();
}

}  // namespace tasuki
