// Halo: turns fields and widths into moves. The geometry is in halo_pieces.cpp.
#include "tasuki/halo.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "fields/field_storage.hpp"
#include "fields/placement_of.hpp"
#include "operations/state.hpp"
#include "shapes/halo.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

HaloBuffer buffer_of(const HaloField& entry) {
  const FieldBase& field = entry.field;
  const FieldBase::Storage& storage = *FieldAccess::storage(field);
  return {field.name(), field.element_bytes(), field.dtype(), entry.width, field.shadow(), storage.pad, storage.orders};
}

// Whether the cells of two fields share bytes, where the address ranges of their memory do.
bool overlap_in_cells(const FieldBase& a, const std::byte* at_a, const FieldBase& b, const std::byte* at_b) {
  const Layout layouts[] = {all_cells(a), all_cells(b)};
  const std::int64_t counts[] = {1, 1};
  const std::int64_t places[] = {0, at_b - at_a};
  return Layout::structure(counts, places, layouts).overlaps();
}

std::string complaint_about(const HaloField& entry, const HaloOptions& options) {
  const FieldBase& field = entry.field;
  if (FieldAccess::storage(field)->freed) return fmt::format("field {} has been freed", field.name());
  return complaint_about(buffer_of(entry), field.grid().ndims(), options.reverse);
}

std::string complaint_about(const std::vector<HaloField>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (&runtime_of(fields[i].field.grid().context()) != &runtime_of(fields[0].field.grid().context())) {
      return fmt::format("field {} belongs to another context than field {}", fields[i].field.name(),
                         fields[0].field.name());
    }
    for (std::size_t j = 0; j < i; ++j) {
      const auto& a = *FieldAccess::storage(fields[i].field);
      const auto& b = *FieldAccess::storage(fields[j].field);
      for (const std::byte* p : a.memory) {
        for (const std::byte* q : b.memory) {
          if (p < q + b.bytes && q < p + a.bytes && a.bytes > 0 && b.bytes > 0 &&
              ((!a.orders && !b.orders) || overlap_in_cells(fields[i].field, p, fields[j].field, q))) {
            return fmt::format(
                "fields {} and {} overlap in memory (or are the same field twice): their shadows would be "
                "written twice",
                a.name, b.name);
          }
        }
      }
    }
  }
  return {};
}

HaloMoves moves_of(const std::vector<HaloField>& fields, const HaloOptions& options) {
  std::vector<const Placement*> placements;
  std::vector<HaloBuffer> buffers;
  for (const HaloField& entry : fields) {
    placements.push_back(&placement_of(entry.field.grid()));
    buffers.push_back(buffer_of(entry));
  }
  return {std::move(placements), std::move(buffers), options.corners, options.reverse, options.cuts};
}

// The fields' memory, under the names that planning gave them.
void add_memory(Description& d, const std::vector<HaloField>& fields, const HaloOptions& options) {
  d.keep.reserve(d.keep.size() + fields.size());  // so that nothing fails between counting a user and keeping it
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const FieldBase& field = fields[f].field;
    const auto& storage = FieldAccess::storage(field);
    UserBuffer buffer;
    buffer.name = d.problem.buffers[f].name;
    buffer.bytes = field.bytes();
    buffer.memory = storage->memory;
    buffer.where = storage->where;
    if (field.copies() > 1) {
      buffer.current = &storage->current;
      buffer.alternating = options.alternating;
    }
    d.buffers.push_back(std::move(buffer));
    const int rank = field.grid().context().rank();
    if (!storage->orders)
      d.cells.push_back({field.element_bytes(), memory_extents(placement_of(field.grid()), buffer_of(fields[f]), rank),
                         field.owned(), field.shadow(), fields[f].width});
    ++storage->users;
    d.keep.emplace_back(static_cast<void*>(storage.get()), [storage](void*) { --storage->users; });
  }
  if (d.cells.size() != fields.size()) d.cells.clear();  // which are of all fields or of none
}

Description describe(const std::vector<HaloField>& fields, const HaloOptions& options) {
  if (fields.empty()) throw Error("Halo: argument 'fields' is empty; give at least one field");
  Runtime& runtime = runtime_of(fields[0].field.grid().context());
  Description d(runtime, "Halo");
  std::vector<std::string> names;
  std::string complaint;
  for (const auto& entry : fields) {
    names.push_back(entry.field.name());
    if (complaint.empty()) complaint = complaint_about(entry, options);
    if (complaint.empty()) complaint = complaint_about(options.cuts, placement_of(entry.field.grid()));
  }
  if (complaint.empty()) complaint = complaint_about(fields);
  d.agreement.same("fields", fmt::format("{}", fmt::join(names, ","))).same("number of fields", std::ssize(names));
  d.agreement.same("corners", options.corners ? "true" : "false").same("reverse", options.reverse ? "true" : "false");
  d.agreement.same("alternating", options.alternating ? "true" : "false");
  d.agreement.same("cuts", fmt::format("{}", options.cuts));
  for (const auto& [field, width] : fields) {
    const auto dims = static_cast<std::size_t>(field.grid().ndims());
    d.agreement.same("width of field " + field.name(),
                     fmt::format("{}/{}", fmt::join(width.lo.begin(), width.lo.begin() + dims, ","),
                                 fmt::join(width.hi.begin(), width.hi.begin() + dims, ",")));
    d.agreement.same("field " + field.name(),
                     fmt::format("the context's object {}", FieldAccess::storage(field)->number));
    d.agreement.same("element size of field " + field.name(), field.element_bytes());
    d.agreement.same("current copy of field " + field.name(), field.current());
  }
  d.agreement.complain(complaint);
  if (!complaint.empty()) return d;
  d.attempt.locally("listing the pieces of a halo", [&] {
    try {
      d.problem = moves_of(fields, options).problem(runtime.rank());
    } catch (const Error& error) {
      d.agreement.complain(error);
      return;
    }
    add_memory(d, fields, options);
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
