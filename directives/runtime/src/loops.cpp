// See loops.hpp.
#include "loops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

namespace {

// The least index of the loop that is at least `index`.
std::int64_t rounded_up(const Range& loop, std::int64_t index) {
  if (index <= loop.first) return loop.first;
  return loop.first + (index - loop.first + loop.step - 1) / loop.step * loop.step;
}

// The loop's indices in [begin, end).
Range within(const Range& loop, std::int64_t begin, std::int64_t end) {
  Range part{rounded_up(loop, begin), std::min(loop.end, end), loop.step};
  if (part.end <= part.first) part.end = part.first;
  return part;
}

}  // namespace

Range next_piece(const Cut& cut, int part, const Range& loop, std::int64_t after) {
  const Range none{loop.end, loop.end, loop.step};
  if (cut.format() == Format::whole) {
    const Range all = within(loop, std::max(after, cut.first()), cut.end());
    return all.count() > 0 ? all : none;
  }
  const bool single = cut.format() == Format::cyclic && cut.size() == 1;
  std::int64_t at = after;
  // Of a cut into single indices the parts repeat after as many steps as there are parts.
  for (std::int64_t tries = 0; !single || tries < cut.parts(); ++tries) {
    at = rounded_up(loop, std::max(at, cut.first()));
    if (at >= std::min(loop.end, cut.end())) return none;
    if (single) {
      if (cut.owner(at) != part) {
        at += 1;
        continue;
      }
      std::int64_t step = loop.step;
      while (step % cut.parts() != 0) step += loop.step;
      return {at, std::min(loop.end, cut.end()), step};
    }
    const Range run = cut.run_after(part, at);
    if (run.count() == 0) return none;
    const Range piece = within(loop, std::max(at, run.first), run.end);
    if (piece.count() > 0) return piece;
    at = run.end;
  }
  return none;
}

std::vector<Nest> nests_of(const std::vector<Cut>& cuts, const std::vector<int>& parts, const Nest& loop, Edge edge,
                           const std::vector<Layers>& layers) {
  Nest own;
  Nest other;
  for (std::size_t d = 0; d < loop.size(); ++d) {
    const Cut& cut = cuts[d];
    const Layers width = d < layers.size() ? layers[d] : Layers{};
    if (!cut.contiguous())
      throw Error(
          fmt::format("dimension {} of the template is cyclic, so its iterations are no single range there", d));
    const std::int64_t begin = cut.begin_of(parts[d]);
    const std::int64_t end = cut.begin_of(parts[d] + 1);
    if (begin == end) return {};  // a node without indices executes nothing, whatever the width
    own.push_back(within(loop[d], begin, end));
    other.push_back(cut.format() == Format::whole ? own.back()
                                                  : within(loop[d], begin - width.below, end + width.above));
  }
  const auto empty = [](const Nest& nest) {
    return std::any_of(nest.begin(), nest.end(), [](const Range& range) { return range.count() == 0; });
  };
  if (edge == Edge::expand) return empty(other) ? std::vector<Nest>() : std::vector<Nest>{other};
  // The larger of both without the smaller, a side after the other: what is before and after in the first dimension,
  // then in the second of what is left, ...
  const bool grows =
      std::all_of(layers.begin(), layers.end(), [](const Layers& w) { return w.below >= 0 && w.above >= 0; });
  const bool shrinks =
      std::all_of(layers.begin(), layers.end(), [](const Layers& w) { return w.below <= 0 && w.above <= 0; });
  if (!grows && !shrinks)
    throw Error("the widths of margin have both signs; give widths that are all 0 or more, or all 0 or less");
  std::vector<Nest> result;
  Nest left = grows ? other : own;
  const Nest& inner = grows ? own : other;
  if (empty(inner)) return empty(left) ? std::vector<Nest>() : std::vector<Nest>{left};
  const auto add = [&](std::size_t d, std::int64_t first, std::int64_t end) {
    Nest nest = left;
    nest[d] = {first, end, loop[d].step};
    if (!empty(nest)) result.push_back(nest);
  };
  for (std::size_t d = 0; d < loop.size(); ++d) {
    add(d, left[d].first, inner[d].first);
    add(d, rounded_up(loop[d], inner[d].end), left[d].end);
    left[d] = inner[d];
  }
  return result;
}

}  // namespace tasuki::xmp
