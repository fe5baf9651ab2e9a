// Which cells of which rank fill which shadow: pure index arithmetic, found by intersecting shadows with owned boxes.
#pragma once

#include <string>
#include <vector>

#include "grid/edges.hpp"
#include "grid/placement.hpp"

namespace tasuki {

/// A run of cells in one dimension that the ranks at `receiver` keep in their memory and the ranks at `owner` own.
/// `side` is -1 (shadow below), 0 (the receiver's own cells) or +1 (shadow above).
struct Segment {
  int receiver = 0;
  int owner = 0;
  int side = 0;
  int ordinal = 0;               ///< among the receiver's segments of this dimension
  std::int64_t receiver_at = 0;  ///< local index of the first cell at the receiver
  std::int64_t owner_at = 0;     ///< and at the owner
  std::int64_t count = 0;
  bool mirrored = false;  ///< the owner's cells go down from `owner_at`
  bool negated = false;
};

/// A box of cells that `owner` owns and `receiver` has in its shadow; extents in cells, local starts on both sides.
struct Piece {
  int owner = 0;
  int receiver = 0;
  std::int64_t seq = 0;  ///< equal on both ranks, unique between the two
  Index owner_at{};
  Index receiver_at{};
  Index count{};
  std::array<bool, kMaxDims> mirrored{};  ///< the owner's cells go down from `owner_at` in these dimensions
  bool negated = false;                   ///< values change their sign
  std::string direction;                  ///< `-0+`, as the receiver sees it
  std::int64_t round = 0;                 ///< of `Move::round`: pairs of neighbours exchange in the same round
};

/// Where pieces are cut besides: global indices by dimension, ascending. Missing dimensions have none.
using Cuts = std::vector<std::vector<std::int64_t>>;

/// The geometry of a halo on a grid: made once, asked for every rank. Because shadows are intersected with whatever box
/// owns the cell, uneven splits, empty ranks, wrapped or mirrored edges and widths beyond the next rank need no special
/// case.
class HaloGeometry {
 public:
  /// `shadow` is what a field allocates, `width` how much of it takes part. The placement must outlive this. Mirrored
  /// edges: of dimensions that are not periodic and have the cells that a mirror shows.
  HaloGeometry(const Placement& placement, const Width& width, const Width& shadow, bool corners, const Cuts& cuts = {},
               const Edges& edges = {});

  /// The pieces in which `rank` is owner or receiver: first those that it receives, in a fixed order.
  std::vector<Piece> pieces(int rank) const;

  int ndims() const { return static_cast<int>(dims_.size()); }

  /// All segments of dimension d, by receiver, in a fixed order.
  const std::vector<Segment>& segments(int d) const { return dims_[static_cast<std::size_t>(d)].all; }

 private:
  struct Dimension {
    std::vector<Segment> all;
    std::vector<std::vector<int>> received;  ///< per coordinate: indices into `all`
    std::vector<std::vector<int>> owned;
    std::int64_t radix = 0;  ///< more than any ordinal
  };
  using Lists = std::vector<const std::vector<int>*>;
  void walk(const Lists& lists, std::size_t d, int outside, std::vector<const Segment*>& chosen,
            std::vector<Piece>& out) const;
  Piece piece(const std::vector<const Segment*>& chosen) const;

  const Placement& placement_;
  bool corners_;
  std::vector<Dimension> dims_;
};

}  // namespace tasuki
