// The cells that a halo's promises name: see fits_field.hpp.
#include "operations/fits_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fields/field_storage.hpp"
#include "fields/placement_of.hpp"
#include "layout/nest_loop.hpp"
#include "shapes/halo.hpp"

namespace tasuki {

namespace {

/// A rank's part of a field: from offsets in memory to cells of the grid.
class Part {
 public:
  Part(const FieldBase& field, int rank)
      : grid_(field.grid()),
        own_(placement_of(grid_).owned(rank)),
        shadow_(field.shadow()),
        element_(field.element_bytes()) {
    const HaloBuffer shape{field.name(), element_,       field.dtype(),
                           shadow_,      field.shadow(), FieldAccess::storage(field)->pad};
    extents_ = memory_extents(placement_of(grid_), shape, rank);
    for (const std::int64_t extent : extents_) cells_ *= extent;
  }

  struct Cell {
    bool there = false;  // not padding, and at the beginning of an element
    bool owned = true;
    Index global{};
  };

  Cell at(std::int64_t offset) const {
    Cell cell;
    std::int64_t left = offset / element_;
    if (offset % element_ != 0 || left >= cells_) return cell;
    for (std::size_t d = extents_.size(); d-- > 0; left /= extents_[d]) {
      const std::int64_t local = left % extents_[d];
      const int dim = static_cast<int>(d);
      if (local >= shadow_.lo[d] + own_.extent(dim) + shadow_.hi[d]) return cell;
      const std::int64_t global = own_.lo[d] + local - shadow_.lo[d];
      cell.owned = cell.owned && global >= own_.lo[d] && global < own_.hi[d];
      const std::int64_t all = grid_.extent(dim);
      cell.global[d] = grid_.periodic(dim) ? ((global % all) + all) % all : global;
    }
    cell.there = true;
    return cell;
  }

  /// Whether a shadow cell shows the owned one: it is the same cell, or outside the grid its image in a mirror.
  bool shows(const Index& shadow, const Index& owned) const {
    for (int d = 0; d < grid_.ndims(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (shadow[i] == owned[i]) continue;
      const std::int64_t face = shadow[i] < 0 ? -1 : 2 * grid_.extent(d) - 1;
      const std::int64_t mirror = shadow[i] + owned[i];  // about the face, or about the cell inside it
      const bool outside = shadow[i] < 0 || shadow[i] >= grid_.extent(d);
      if (!outside || (mirror != face && mirror != face + (shadow[i] < 0 ? 1 : -1))) return false;
    }
    return true;
  }

 private:
  const Grid& grid_;
  Box own_;
  Width shadow_;
  std::int64_t element_;
  std::vector<std::int64_t> extents_;
  std::int64_t cells_ = 1;  // padding included
};

const FieldBase* field_of(const std::vector<PlanMemory>& memory, const std::string& name) {
  const auto found = std::find_if(memory.begin(), memory.end(), [&](const PlanMemory& m) { return m.name == name; });
  return found == memory.end() || found->field.empty() ? nullptr : found->field.data();
}

std::string shown(const Index& at, int ndims) {
  return fmt::format("({})", fmt::join(at.begin(), at.begin() + ndims, ", "));
}

}  // namespace

std::string field_misfit(const Plan& plan, const std::vector<PlanMemory>& memory) {
  const std::string_view whole = plan.operation;
  // The user's name comes first, which may hold anything.
  const auto is = [&](std::string_view kind) {
    return whole.starts_with(kind) || whole.find(": " + std::string(kind)) != whole.npos;
  };
  if (!is("halo ") && !is("reverse halo ")) return {};
  for (const Expect& e : plan.expects) {
    const Buffer& from = plan.buffers[static_cast<std::size_t>(e.src)];
    const Buffer& to = plan.buffers[static_cast<std::size_t>(e.dst)];
    const FieldBase* const field = field_of(memory, to.name);
    if (field == nullptr) continue;
    if (FieldAccess::storage(*field)->orders)
      return fmt::format(
          "field '{}' is not in C order; plans are loaded for fields in C order only, so make the halo "
          "without a plan",
          to.name.view());
    if (from.name != to.name)
      return fmt::format("the plan fills field '{}' from '{}'; a halo keeps fields apart", to.name.view(),
                         from.name.view());
    const bool adds = accumulates(e.dtype, e.op);
    if (e.dtype != DType::none && e.dtype != field->dtype())
      return fmt::format("the plan combines {} in field '{}', whose elements are {}", to_string(e.dtype),
                         to.name.view(), to_string(field->dtype()));
    const Part source(*field, from.rank);
    const Part target(*field, to.rank);
    const int ndims = field->grid().ndims();
    std::string wrong;
    const auto check = [&](std::int64_t src, std::int64_t dst) {
      const Part::Cell a = source.at(src);
      const Part::Cell b = target.at(dst);
      // A halo brings an owned cell into a shadow of it; the reverse adds the shadow to the cell.
      const bool fits = a.there && b.there && a.owned != adds && b.owned == adds &&
                        target.shows(adds ? a.global : b.global, adds ? b.global : a.global);
      if (fits || !wrong.empty()) return;
      const auto name = [&](const Part::Cell& cell, int rank) {
        if (!cell.there) return fmt::format("what is no cell on rank {}", rank);
        return fmt::format("{} {} of rank {}", cell.owned ? "cell" : "shadow cell", shown(cell.global, ndims), rank);
      };
      wrong = fmt::format("the plan is not one for field '{}' on this grid: it takes {} for {}", to.name.view(),
                          name(a, from.rank), name(b, to.rank));
    };
    for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count && wrong.empty(); ++k) {
      const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
      for_each_offset(copy, [&](std::int64_t src, std::int64_t dst) {
        for (std::int64_t at = 0; at < copy.block && wrong.empty(); at += field->element_bytes())
          check(src + at, dst + at);
        if (copy.block % field->element_bytes() != 0 && wrong.empty())
          wrong = fmt::format("the plan moves blocks of {} bytes, but the elements of field '{}' have {}", copy.block,
                              to.name.view(), field->element_bytes());
      });
    }
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace tasuki
