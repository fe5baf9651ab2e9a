// See sets.hpp.
#include "sets.hpp"

#include <cstddef>
#include <vector>

#include "guard.hpp"
#include "loops.hpp"
#include "world.hpp"

namespace tasuki::xmp {

bool coordinates_in(const NodeShape& nodes, Coordinates& at) {
  const int number = nodes.number_of(world().rank());
  if (number < 0) return false;
  at = nodes.coordinates(number);
  return true;
}

int part_of(const Spread& spread, const Coordinates& at) {
  return spread.node_dim < 0 ? 0 : at[static_cast<std::size_t>(spread.node_dim)];
}

namespace {

// Ranges of a reference to a template must lie within it.
std::vector<Range> ranges_in(const Template& t, const xmp_range section[]) {
  std::vector<Range> ranges;
  for (std::size_t d = 0; d < t.ndims; ++d) {
    const Cut& cut = t.fixed()[d].cut;
    ranges.push_back(section == nullptr ? Range{cut.first(), cut.end()} : range_from(section[d]));
    if (ranges.back().count() > 0 && (ranges.back().first < cut.first() || ranges.back().end > cut.end()))
      refuse("the range is {} to {} in dimension {} of the template, which has {} to {}", ranges.back().first,
             ranges.back().end - 1, d, cut.first(), cut.end() - 1);
  }
  return ranges;
}

// The nodes that own some of the section of the template.
NodeShape owners_of(const Template& t, const xmp_range section[]) {
  const std::vector<Range> ranges = ranges_in(t, section);
  NodeShape owners;
  for (int n = 0; n < t.nodes.size(); ++n) {
    const Coordinates at = t.nodes.coordinates(n);
    bool owns = true;
    for (std::size_t d = 0; d < t.ndims; ++d) {
      const Spread& spread = t.fixed()[d];
      owns = owns && next_piece(spread.cut, part_of(spread, at), ranges[d], ranges[d].first).count() > 0;
    }
    if (owns) owners.ranks.push_back(t.nodes.ranks[static_cast<std::size_t>(n)]);
  }
  if (owners.ranks.empty()) refuse("the section of the template is empty, so that no node executes the task");
  owners.extents = {static_cast<int>(owners.ranks.size())};
  return owners;
}

NodeShape part_of_nodes(const NodeShape& of, const xmp_range section[]) {
  if (section == nullptr) return of;
  NodeShape part;
  for (int n = 0; n < of.size(); ++n) {
    const Coordinates at = of.coordinates(n);
    bool inside = true;
    for (std::size_t d = 0; d < of.extents.size(); ++d) {
      const Range range = range_from(section[d]);
      if (range.first < 0 || range.end > of.extents[d])
        refuse("the section is {} to {} in dimension {} of the nodes, which has {}", range.first, range.end - 1, d,
               of.extents[d]);
      inside = inside && at[d] >= range.first && at[d] < range.end && (at[d] - range.first) % range.step == 0;
    }
    if (inside) part.ranks.push_back(of.ranks[static_cast<std::size_t>(n)]);
  }
  if (part.ranks.empty()) refuse("the section of the nodes is empty, so that no node executes the task");
  part.extents = {static_cast<int>(part.ranks.size())};
  return part;
}

}  // namespace

NodeShape nodes_in(xmp_desc_t on, const xmp_range section[]) {
  if (kind_of(on) == Object::Kind::template_) return owners_of(template_of(on, "on"), section);
  return part_of_nodes(nodes_of(on, "on").shape, section);
}

}  // namespace tasuki::xmp
