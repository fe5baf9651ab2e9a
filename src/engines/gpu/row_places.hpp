// Making lists of row places (tasuki/kernel/impl/row_places.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engines/gpu/program.hpp"
#include "tasuki/kernel/impl/row_places.cuh"

namespace tasuki {

/// Where a unit of a copy lies on both sides, in units.
struct UnitPlace {
  std::int64_t src = 0;
  std::int64_t dst = 0;
};

/// Where the steps of a copy's outermost dimension lie, in units, on sides that have lists (GpuCopy::listed).
struct UnitLists {
  std::vector<std::int32_t> src;
  std::vector<std::int32_t> dst;
  bool empty() const { return src.empty() && dst.empty(); }
};

/// `dim(n)`: the GpuDim in place `n` after the first of the copy's.
template <class DimAt>
UnitLists lists_of(const GpuCopy& copy, const DimAt& dim) {
  UnitLists lists;
  std::int32_t next = 0;
  for (const auto& [side, list] : {std::pair{kSource, &lists.src}, std::pair{kTarget, &lists.dst}}) {
    if ((copy.listed & side) == 0) continue;
    list->resize(dim(copy.dims - 1).count);
    for (std::size_t i = 0; i < list->size(); i += kListedInDim) {
      const GpuDim some = dim(copy.dims + next++);
      std::memcpy(list->data() + i, &some,
                  sizeof(std::int32_t) * std::min<std::size_t>(kListedInDim, list->size() - i));
    }
  }
  return lists;
}

/// `dims`: of the copy, innermost first, as GpuDim.
template <class Dims>
UnitPlace place_of(const Dims& dims, std::size_t count, std::int64_t unit, const UnitLists& lists) {
  UnitPlace place;
  for (std::size_t d = 0; d < count; ++d) {
    const bool outermost = d + 1 == count;
    const std::int64_t at = outermost ? unit : unit % dims[d].count;
    place.src += at * dims[d].src_stride;
    place.dst += at * dims[d].dst_stride;
    if (!outermost) unit /= dims[d].count;
  }
  if (!lists.src.empty()) place.src += lists.src[static_cast<std::size_t>(unit)];
  if (!lists.dst.empty()) place.dst += lists.dst[static_cast<std::size_t>(unit)];
  return place;
}

/// What a row lists.
enum class Listed : std::uint8_t { source, destination, both };

/// The places of a row of so many units.
using LanePlaces = std::array<RowPlaces, kLanes>;
constexpr std::int64_t listed_units(Listed what) {
  return what == Listed::both ? std::int64_t{kLanes} * kCopiedUnits : kLineWords;
}
inline LanePlaces no_places() {
  LanePlaces places;
  places.fill({{kNowhere, kNowhere, kNowhere, kNowhere}});
  return places;
}

/// The places of the row that begins with unit `first` of a copy of so many. None if a place is too far away.
template <class Dims>
std::optional<LanePlaces> places_of(Listed what, const Dims& dims, std::size_t count, const UnitLists& lists,
                                    std::int64_t first, std::int64_t units) {
  const auto fits = [](std::int64_t place) {
    return place > kOthers && place <= std::numeric_limits<std::int32_t>::max();
  };
  LanePlaces places = no_places();
  const std::int64_t end = first + listed_units(what) < units ? first + listed_units(what) : units;
  for (std::int64_t unit = first; unit < end; ++unit) {
    const UnitPlace place = place_of(dims, count, unit, lists);
    if (!fits(place.src) || !fits(place.dst)) return std::nullopt;
    std::int32_t(&at)[4] = places[static_cast<std::size_t>((unit - first) % kLanes)].at;
    const std::int64_t turn = (unit - first) / kLanes;
    if (what == Listed::both) {
      at[2 * turn] = static_cast<std::int32_t>(place.src);
      at[2 * turn + 1] = static_cast<std::int32_t>(place.dst);
    } else {
      at[turn] = static_cast<std::int32_t>(what == Listed::source ? place.src : place.dst);
    }
  }
  return places;
}

}  // namespace tasuki
