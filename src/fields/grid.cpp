// Grid: the decomposition that all ranks have agreed on, and which rank has which box.
#include "tasuki/grid.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fields/placement_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

struct Grid::Shape : Placement {
  int number = 0;
};

const Placement& placement_of(const Grid& grid) {
  return *grid.shape_;
}

Grid::Grid(const Context& context, std::vector<std::int64_t> extents, GridOptions options) : context_(context) {
  Runtime& runtime = runtime_of(context);
  auto shape = std::make_shared<Shape>();
  Agreement agreement(runtime, "Grid");
  try {
    static_cast<Placement&>(*shape) = placed(extents, options, runtime.machine());
  } catch (const std::exception& error) {  // also of a rank that has no memory left: all ranks must throw
    agreement.complain(error);
  }
  agreement.same("extents", fmt::format("{}", fmt::join(extents, " x ")))
      .same("split", fmt::format("{}", fmt::join(options.split, " x ")))
      .same("periodic", fmt::format("{}", options.periodic))
      .same("cuts", fmt::format("{}", options.cuts))
      .same("reorder", options.reorder ? "true" : "false")
      .same("mapping", options.mapping)
      .same("given", fmt::format("{}", fmt::join(options.given, ",")))
      .check();
  shape->number = runtime.next_object();
  shape_ = std::move(shape);
}

int Grid::number() const {
  return shape_->number;
}

int Grid::ndims() const {
  return shape_->cut.ndims();
}

namespace {

/// Returns `value`; throws `Error` unless it is in [0, end).
int checked(const Grid& grid, const char* what, int value, int end) {
  if (value < 0 || value >= end)
    throw Error(
        fmt::format("Grid: rank {}: {} is {}; it must be from 0 to {}", grid.context().rank(), what, value, end - 1));
  return value;
}

int dimension(const Grid& grid, int d) {
  return checked(grid, "the dimension", d, grid.ndims());
}

}  // namespace

std::int64_t Grid::extent(int d) const {
  return shape_->cut.extents[dimension(*this, d)];
}
int Grid::split(int d) const {
  return shape_->cut.split[dimension(*this, d)];
}
bool Grid::periodic(int d) const {
  return shape_->cut.periodic[dimension(*this, d)];
}

std::array<int, kMaxDims> Grid::coords(int rank) const {
  return shape_->coords(checked(*this, "argument 'rank'", rank, context_.size()));
}

int Grid::rank_at(const std::array<int, kMaxDims>& coords) const {
  for (int d = 0; d < ndims(); ++d) checked(*this, "a coordinate", coords[d], split(d));
  return shape_->rank_at(coords);
}

std::int64_t Grid::cut(int d, int coord) const {
  return shape_->cut.cuts[dimension(*this, d)][checked(*this, "argument 'coord'", coord, split(d) + 1)];
}

Box Grid::owned() const {
  return owned(context_.rank());
}

Box Grid::owned(int rank) const {
  return shape_->Placement::owned(checked(*this, "argument 'rank'", rank, context_.size()));
}

}  // namespace tasuki
