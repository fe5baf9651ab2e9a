// Cuts, the automatic split, and the placement of boxes on islands.
#include "grid/decompose.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/counted.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// What a cell of a face across the last dimension costs in cells of other faces: each is a memory access of its own.
constexpr std::int64_t kScattered = 2;

std::string times(std::span<const int> numbers) {
  return fmt::format("{}", fmt::join(numbers, " x "));
}

/// Boxes with cells among those that `extent` cells give to `parts` ranks.
std::int64_t filled(std::int64_t extent, int parts) {
  return std::min<std::int64_t>(extent, parts);
}

void check_extents(std::span<const std::int64_t> extents) {
  if (extents.empty() || extents.size() > kMaxDims)
    throw Error(fmt::format("argument 'extents' has {} dimensions; 1 to {} are possible", extents.size(), kMaxDims));
  Wide cells = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] <= 0) throw Error(fmt::format("extents[{}] is {}; it must be at least 1", d, extents[d]));
    cells = narrow(cells * extents[d], "the number of cells", fmt::format("extents[{}]", d).c_str(), extents[d]);
  }
}

void check_cuts(int d, const std::vector<std::int64_t>& cuts, std::int64_t extent, int split) {
  if (cuts.size() != static_cast<std::size_t>(split) + 1)
    throw Error(fmt::format("cuts[{}] has {} entr{}; {} in that dimension need{} {}", d, cuts.size(),
                            cuts.size() == 1 ? "y" : "ies", counted(split, "rank"), split == 1 ? "s" : "", split + 1));
  if (cuts.front() != 0 || cuts.back() != extent)
    throw Error(fmt::format("cuts[{}] goes from {} to {}; it must go from 0 to the extent, {}", d, cuts.front(),
                            cuts.back(), extent));
  const auto down = std::is_sorted_until(cuts.begin(), cuts.end());
  if (down != cuts.end())
    throw Error(fmt::format("cuts[{}] is not ascending: {} comes after {}", d, *down, *std::prev(down)));
}

/// The user's split with 0 for what is open; a dimension with cuts is settled by their number.
std::vector<int> wanted_split(const GridOptions& options, std::size_t ndims, int ranks) {
  if (!options.periodic.empty() && options.periodic.size() != ndims)
    throw Error(fmt::format("argument 'periodic' has {} entr{}; the grid has {} dimensions, and each needs one",
                            options.periodic.size(), options.periodic.size() == 1 ? "y" : "ies", ndims));
  if (options.cuts.size() > ndims)
    throw Error(fmt::format("argument 'cuts' has {} entries; the grid has {} dimensions", options.cuts.size(), ndims));
  if (!options.split.empty() && options.split.size() != ndims)
    throw Error(fmt::format("argument 'split' has {} entries ({}); the grid has {} dimensions", options.split.size(),
                            times(options.split), ndims));
  std::vector<int> split = options.split;
  split.resize(ndims, 0);
  for (std::size_t d = 0; d < ndims; ++d) {
    if (split[d] < 0)
      throw Error(fmt::format("split[{}] is {}; it must be a number of ranks, or 0 to leave it open", d, split[d]));
    if (split[d] == 0 && d < options.cuts.size() && options.cuts[d].size() > 1)
      split[d] = static_cast<int>(options.cuts[d].size() - 1);
  }
  const bool open = std::find(split.begin(), split.end(), 0) != split.end();
  Wide product = 1;
  for (const int parts : split)
    if (parts > 0) product = std::min<Wide>(product * parts, std::numeric_limits<std::int64_t>::max());
  const auto given = static_cast<std::int64_t>(product);
  if (!open && given != ranks)
    throw Error(fmt::format(
        "split {} makes {}, but the context has {}; the product must be equal, or a 0 leaves a dimension to "
        "Tasuki",
        times(split), given == 1 ? "1 box" : fmt::format("{} boxes", given), counted(ranks, "rank")));
  if (open && ranks % given != 0)
    throw Error(fmt::format("split {} cannot be completed: {} does not divide the context's {}", times(split), given,
                            counted(ranks, "rank")));
  return split;
}

/// All ways to fill the open entries so that the product of all is `ranks`, large early entries first.
void for_each_split(std::vector<int>& split, std::size_t d, const std::vector<bool>& open, int left,
                    const std::function<void()>& use) {
  while (d < split.size() && !open[d]) ++d;
  if (d == split.size()) {
    if (left == 1) use();
    return;
  }
  for (int parts = left; parts >= 1; --parts) {
    if (left % parts != 0) continue;
    split[d] = parts;
    for_each_split(split, d + 1, open, left / parts, use);
  }
}

}  // namespace

int Decomposition::boxes() const {
  return std::accumulate(split.begin(), split.end(), 1, std::multiplies<>());
}

std::array<int, kMaxDims> Decomposition::coords(int box) const {
  std::array<int, kMaxDims> at{};
  for (int d = ndims() - 1; d >= 0; --d) {
    at[d] = box % split[d];
    box /= split[d];
  }
  return at;
}

int Decomposition::box_at(const std::array<int, kMaxDims>& coords) const {
  int box = 0;
  for (int d = 0; d < ndims(); ++d) box = box * split[d] + coords[d];
  return box;
}

Box Decomposition::box(int number) const {
  const auto at = coords(number);
  Box result;
  result.ndims = ndims();
  for (int d = 0; d < ndims(); ++d) {
    result.lo[d] = cuts[d][at[d]];
    result.hi[d] = cuts[d][at[d] + 1];
  }
  return result;
}

Decomposition decompose(std::span<const std::int64_t> extents, const GridOptions& options, int ranks) {
  check_extents(extents);
  Decomposition cut;
  cut.extents.assign(extents.begin(), extents.end());
  const std::vector<int> wanted = wanted_split(options, extents.size(), ranks);
  cut.periodic = options.periodic;
  cut.periodic.resize(extents.size(), false);
  cut.split = choose_split(extents, wanted, cut.periodic, ranks);
  for (int d = 0; d < cut.ndims(); ++d) {
    const bool given = d < static_cast<int>(options.cuts.size()) && !options.cuts[d].empty();
    if (given) check_cuts(d, options.cuts[d], extents[d], cut.split[d]);
    cut.cuts.push_back(given ? options.cuts[d] : even_cuts(extents[d], cut.split[d]));
  }
  return cut;
}

std::vector<std::int64_t> even_cuts(std::int64_t extent, int parts) {
  std::vector<std::int64_t> cuts{0};
  for (int i = 0; i < parts; ++i) cuts.push_back(cuts.back() + extent / parts + (i < extent % parts ? 1 : 0));
  return cuts;
}

std::vector<int> choose_split(std::span<const std::int64_t> extents, std::span<const int> split,
                              const std::vector<bool>& periodic, int ranks) {
  std::vector<bool> open;
  int left = ranks;
  for (const int parts : split) {
    open.push_back(parts == 0);
    if (parts > 0) left /= parts;
  }
  const Wide cells = std::accumulate(extents.begin(), extents.end(), Wide{1}, std::multiplies<>());

  using Badness = std::tuple<Wide, Wide, Wide>;  // minus boxes with cells, face cells, cells of the largest box
  std::vector<int> trial(split.begin(), split.end());
  std::vector<int> best;
  Badness least;
  for_each_split(trial, 0, open, left, [&] {
    Wide boxes = 1;
    Wide faces = 0;
    Wide largest = 1;
    for (std::size_t d = 0; d < trial.size(); ++d) {
      const std::int64_t parts = filled(extents[d], trial[d]);
      boxes *= parts;
      const bool scattered = d > 0 && d + 1 == trial.size();
      faces += (parts - 1 + (periodic[d] && parts > 1 ? 1 : 0)) * (cells / extents[d]) * (scattered ? kScattered : 1);
      largest *= (extents[d] + parts - 1) / parts;
    }
    const Badness badness{-boxes, faces, largest};
    if (best.empty() || badness < least) {
      best = trial;
      least = badness;
    }
  });
  return best;
}

}  // namespace tasuki
