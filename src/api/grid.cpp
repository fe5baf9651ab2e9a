// The C interface of Grid.
#include <fmt/format.h>

#include <cstddef>

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

constexpr std::size_t kFirstOptions = offsetof(tasuki_grid_options, mapping);
constexpr std::size_t kFirstInfo = sizeof(tasuki_grid_info);

GridOptions options_from(const tasuki_grid_options* options, int ndims, int ranks) {
  const tasuki_grid_options from = read_options(options, TASUKI_GRID_OPTIONS_INIT, kFirstOptions);
  GridOptions to;
  if (from.split != nullptr) to.split.assign(from.split, from.split + ndims);
  if (from.periodic != nullptr)
    for (int d = 0; d < ndims; ++d) to.periodic.push_back(from.periodic[d] != 0);
  if (from.cuts != nullptr) {
    given(from.cut_counts, "options->cut_counts");
    for (int d = 0; d < ndims; ++d) {
      const int count = from.cuts[d] == nullptr ? 0 : from.cut_counts[d];
      if (count < 0)
        throw Failure(TASUKI_BAD_ARGUMENT,
                      fmt::format("options->cut_counts[{}] is {}; it must be 0 or more", d, count));
      to.cuts.push_back(list_from(from.cuts[d], count, "options->cuts"));
    }
  }
  to.reorder = from.reorder != 0;
  if (from.mapping != nullptr) to.mapping = from.mapping;
  if (from.given != nullptr) to.given.assign(from.given, from.given + ranks);
  return to;
}

int check_dimensions(int ndims) {
  if (ndims < 1 || ndims > kMaxDims)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'ndims' is {}; it must be 1 to {}", ndims, kMaxDims));
  return ndims;
}

}  // namespace

tasuki_status tasuki_grid_create(tasuki_context context, int ndims, const int64_t* extents,
                                 const tasuki_grid_options* options, tasuki_grid* grid) {
  return guarded("tasuki_grid_create", [&] {
    const Context& ranks = get(context, "context");
    std::vector<std::int64_t> cells;
    GridOptions chosen;
    agree("tasuki_grid_create", ranks, [&] {
      given(grid, "grid");
      cells = list_from(extents, check_dimensions(ndims), "extents");
      chosen = options_from(options, ndims, ranks.size());
    });
    *grid = keep<tasuki_grid>(std::make_unique<Grid>(ranks, std::move(cells), std::move(chosen)));
  });
}

tasuki_status tasuki_grid_free(tasuki_grid* grid) {
  return let_go("tasuki_grid_free", grid, "grid", [](Grid&) {});
}

tasuki_status tasuki_grid_get_info(tasuki_grid grid, tasuki_grid_info* info) {
  return guarded("tasuki_grid_get_info", [&] {
    const Grid& one = get(grid, "grid");
    tasuki_grid_info facts{};
    facts.ndims = one.ndims();
    facts.number = one.number();
    for (int d = 0; d < one.ndims(); ++d) {
      facts.extents[d] = one.extent(d);
      facts.split[d] = one.split(d);
      facts.periodic[d] = one.periodic(d) ? 1 : 0;
    }
    facts.owned = box_for_caller(one.owned());
    write_info(info, facts, kFirstInfo);
  });
}

tasuki_status tasuki_grid_owned(tasuki_grid grid, int rank, tasuki_box* box) {
  return guarded("tasuki_grid_owned", [&] { *given(box, "box") = box_for_caller(get(grid, "grid").owned(rank)); });
}

tasuki_status tasuki_grid_coords(tasuki_grid grid, int rank, int* coords) {
  return guarded("tasuki_grid_coords", [&] {
    const Grid& one = get(grid, "grid");
    given(coords, "coords");
    const auto found = one.coords(rank);
    std::copy(found.begin(), found.begin() + one.ndims(), coords);
  });
}

tasuki_status tasuki_grid_rank_at(tasuki_grid grid, const int* coords, int* rank) {
  return guarded("tasuki_grid_rank_at", [&] {
    const Grid& one = get(grid, "grid");
    given(rank, "rank");
    std::array<int, kMaxDims> at{};
    std::copy(given(coords, "coords"), coords + one.ndims(), at.begin());
    *rank = one.rank_at(at);
  });
}

tasuki_status tasuki_grid_cut(tasuki_grid grid, int d, int coord, int64_t* index) {
  return guarded("tasuki_grid_cut", [&] { *given(index, "index") = get(grid, "grid").cut(d, coord); });
}
