// Placement: a cut grid and who got which box; what planning needs to know of a grid.
#pragma once

#include <span>
#include <tuple>
#include <vector>

#include "grid/decompose.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

struct Placement {
  Decomposition cut;
  std::vector<int> rank_of_box;
  std::vector<int> box_of_rank;

  int ndims() const { return cut.ndims(); }
  Box owned(int rank) const { return cut.box(box_of_rank[static_cast<std::size_t>(rank)]); }
  std::array<int, kMaxDims> coords(int rank) const { return cut.coords(box_of_rank[static_cast<std::size_t>(rank)]); }
  int rank_at(const std::array<int, kMaxDims>& at) const {
    return rank_of_box[static_cast<std::size_t>(cut.box_at(at))];
  }
};

/// Cuts the grid for the ranks of the machine, and places the boxes as the options say. Throws `Error`, without a
/// prefix, for anything that cannot be.
Placement placed(std::span<const std::int64_t> extents, const GridOptions& options, const Machine& machine);

/// What a placement asks of the links of a machine's networks in one exchange of faces one cell wide. Between islands
/// whose network is not described, every two of them are taken to be a hop apart.
struct LinkLoad {
  Wide busiest = 0;  ///< cells on the link that has the most: of a torus a link, else a port
  Wide hops = 0;     ///< cells times hops, all faces together
  friend bool operator<(const LinkLoad& a, const LinkLoad& b) {
    return std::tie(a.busiest, a.hops) < std::tie(b.busiest, b.hops);
  }
};
LinkLoad link_load(const Decomposition& cut, std::span<const int> rank_of_box, const Machine& machine);

}  // namespace tasuki
