// Distributions of arrays: see distribution.hpp.
#include "grid/distribution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "layout/checked.hpp"
#include "layout/counted.hpp"

namespace tasuki {

namespace {

using Kind = DimDistribution::Kind;

// Blocks without cuts of their own: the first `longer` coordinates have `length` + 1 indices, the others `length`.
struct Even {
  Even(std::int64_t extent, int ranks) : length(extent / ranks), longer(extent % ranks) {}
  std::int64_t length;
  std::int64_t longer;
  std::int64_t begin(std::int64_t coordinate) const { return coordinate * length + std::min(coordinate, longer); }
  std::int64_t coordinate(std::int64_t at) const {
    const std::int64_t in_longer = longer * (length + 1);
    return at < in_longer ? at / (length + 1) : longer + (at - in_longer) / length;
  }
};

// A dimension of one rank has one block, whatever it is called.
Kind kind_of(const DimDistribution& dim) {
  return dim.ranks == 1 ? Kind::block : dim.kind;
}

std::int64_t width_of(const DimDistribution& dim, std::int64_t extent) {
  return std::min(dim.width, extent);
}

std::string complaint_about(const DimDistribution& dim, std::int64_t extent, std::size_t d) {
  if (dim.kind == Kind::cuts) {
    const auto& cuts = dim.cuts;
    if (cuts.size() < 2 || static_cast<std::size_t>(dim.ranks) + 1 != cuts.size())
      return fmt::format("dimension {} has {} for {}; it needs one more cut than ranks", d,
                         counted(std::ssize(cuts), "cut"), counted(dim.ranks, "rank"));
    if (cuts.front() != 0 || cuts.back() != extent)
      return fmt::format("the cuts of dimension {} go from {} to {}; they must go from 0 to the extent, {}", d,
                         cuts.front(), cuts.back(), extent);
    const auto down = std::ranges::is_sorted_until(cuts);
    if (down != cuts.end())
      return fmt::format("the cuts of dimension {} are not ascending: {} comes after {}", d, *down, *std::prev(down));
  }
  if (dim.ranks < 1) return fmt::format("dimension {} is over {} ranks; it must be at least 1", d, dim.ranks);
  if (dim.kind == Kind::cyclic && dim.width < 1)
    return fmt::format("dimension {} is dealt out in blocks of {} indices; it must be at least 1", d, dim.width);
  return {};
}

std::string text_of(const DimDistribution& dim) {
  switch (dim.kind) {
    case Kind::block:
      return dim.ranks == 1 ? "whole" : fmt::format("block({})", dim.ranks);
    case Kind::cuts:
      return fmt::format("cuts({})", fmt::join(dim.cuts, " "));
    case Kind::cyclic:
      return fmt::format("cyclic({}, {})", dim.ranks, dim.width);
    case Kind::replicated:
      return fmt::format("replicated({})", dim.ranks);
  }
  return {};
}

}  // namespace

DimBlock block_at(const DimDistribution& dim, std::int64_t extent, std::int64_t at) {
  switch (kind_of(dim)) {
    case Kind::block: {
      const Even even(extent, dim.ranks);
      const std::int64_t coordinate = even.coordinate(at);
      return {static_cast<int>(coordinate), even.begin(coordinate), even.begin(coordinate + 1), 0};
    }
    case Kind::cuts: {
      const auto after = std::ranges::upper_bound(dim.cuts, at);
      return {static_cast<int>(after - dim.cuts.begin()) - 1, *std::prev(after), *after, 0};
    }
    case Kind::cyclic: {
      const std::int64_t width = width_of(dim, extent);
      const std::int64_t number = at / width;
      const std::int64_t begin = number * width;
      return {static_cast<int>(number % dim.ranks), begin, begin + std::min(width, extent - begin),
              number / dim.ranks * width};
    }
    case Kind::replicated:
      break;
  }
  return {0, 0, extent, 0};
}

std::vector<DimBlock> blocks_of(const DimDistribution& dim, std::int64_t extent, int coordinate) {
  std::vector<DimBlock> blocks;
  const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t local) {
    if (begin < end) blocks.push_back({coordinate, begin, end, local});
  };
  switch (kind_of(dim)) {
    case Kind::block: {
      const Even even(extent, dim.ranks);
      add(even.begin(coordinate), even.begin(coordinate + 1), 0);
      break;
    }
    case Kind::cuts: {
      const auto c = static_cast<std::size_t>(coordinate);
      add(dim.cuts[c], dim.cuts[c + 1], 0);
      break;
    }
    case Kind::cyclic: {
      const std::int64_t width = width_of(dim, extent);
      const std::int64_t last = (extent - 1) / width;
      for (std::int64_t number = coordinate; number <= last; number += dim.ranks) {
        const DimBlock block = block_at(dim, extent, number * width);
        add(block.begin, block.end, block.local);
      }
      break;
    }
    case Kind::replicated:
      add(0, extent, 0);
      break;
  }
  return blocks;
}

std::int64_t local_extent(const DimDistribution& dim, std::int64_t extent, int coordinate) {
  if (kind_of(dim) != Kind::cyclic) {
    const auto blocks = blocks_of(dim, extent, coordinate);
    return blocks.empty() ? 0 : blocks.front().end - blocks.front().begin;
  }
  const std::int64_t width = width_of(dim, extent);
  const std::int64_t turns = extent / width / dim.ranks;
  const std::int64_t rest = extent - turns * dim.ranks * width;
  const Wide before = Wide{coordinate} * width;
  return turns * width + static_cast<std::int64_t>(std::clamp<Wide>(rest - before, 0, width));
}

std::vector<int> coordinates_of(const ArrayDistribution& array, int place) {
  std::vector<int> at(array.dims.size());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = place % array.dims[d].ranks;
    place /= array.dims[d].ranks;
  }
  return at;
}

int place_at(const ArrayDistribution& array, const std::vector<int>& coordinates) {
  int place = 0;
  for (std::size_t d = 0; d < coordinates.size(); ++d) place = place * array.dims[d].ranks + coordinates[d];
  return place;
}

std::string ArrayDistribution::complaint(int ranks_there) const {
  if (extents.empty() || extents.size() > kMaxDims)
    return fmt::format("the array has {} dimensions; 1 to {} are possible", extents.size(), kMaxDims);
  if (dims.size() != extents.size())
    return fmt::format("an array of {} has {} distributions; each dimension needs one",
                       counted(std::ssize(extents), "dimension"), dims.size());
  Wide cells = 1;
  Wide places = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] < 1) return fmt::format("the extent of dimension {} is {}; it must be at least 1", d, extents[d]);
    cells *= extents[d];
    if (cells > Wide{1} << 60) return "the array has more cells than can be counted";
    if (std::string wrong = complaint_about(dims[d], extents[d], d); !wrong.empty()) return wrong;
    places = std::min<Wide>(places * dims[d].ranks, Wide{1} << 40);
  }
  if (ranks.empty()) {
    if (places > ranks_there)
      return fmt::format("the process grid has {} places, but there are ranks 0 to {}",
                         static_cast<std::int64_t>(places), ranks_there - 1);
    return {};
  }
  if (static_cast<Wide>(ranks.size()) != places)
    return fmt::format("{} given for the {} of the process grid", counted(std::ssize(ranks), "rank"),
                       counted(static_cast<std::int64_t>(places), "place"));
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  for (const int rank : {sorted.front(), sorted.back()})
    if (rank < 0 || rank >= ranks_there)
      return fmt::format("rank {} is named, but there are ranks 0 to {}", rank, ranks_there - 1);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return fmt::format("rank {} is named twice; it has one part of the array", *twice);
  return {};
}

int ArrayDistribution::grid_size() const {
  int places = 1;
  for (const DimDistribution& dim : dims) places *= dim.ranks;
  return places;
}

int ArrayDistribution::rank_of(int place) const {
  return ranks.empty() ? place : ranks[static_cast<std::size_t>(place)];
}

int ArrayDistribution::place_of(int rank) const {
  if (ranks.empty()) return rank >= 0 && rank < grid_size() ? rank : -1;
  const auto found = std::ranges::find(ranks, rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::vector<std::int64_t> ArrayDistribution::local(int rank) const {
  std::vector<std::int64_t> all(extents.size(), 0);
  const int place = place_of(rank);
  if (place < 0) return all;
  const std::vector<int> at = coordinates_of(*this, place);
  for (std::size_t d = 0; d < all.size(); ++d) all[d] = local_extent(dims[d], extents[d], at[d]);
  return all;
}

std::vector<std::int64_t> ArrayDistribution::indices(int rank, int d) const {
  std::vector<std::int64_t> all;
  const int place = place_of(rank);
  if (place < 0) return all;
  const auto i = static_cast<std::size_t>(d);
  for (const DimBlock& block : blocks_of(dims[i], extents[i], coordinates_of(*this, place)[i]))
    for (std::int64_t at = block.begin; at < block.end; ++at) all.push_back(at);
  return all;
}

std::string ArrayDistribution::describe() const {
  std::vector<std::string> how;
  for (const DimDistribution& dim : dims) how.push_back(text_of(dim));
  std::string text = fmt::format("{}: {}", fmt::join(extents, " x "), fmt::join(how, ", "));
  if (!ranks.empty()) text += fmt::format(" on ranks {}", fmt::join(ranks, " "));
  return text;
}

}  // namespace tasuki
