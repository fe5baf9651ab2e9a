// Which cells of which rank fill which shadow: pure index arithmetic, found by intersecting shadows with owned boxes.
#pragma once

#include <string>
#include <vector>

#include "tasuki/field.hpp"

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
};

/// All segments of dimension d for every coordinate, in a fixed order. Because shadows are intersected with whatever
/// box owns the cell, uneven splits, empty ranks, wrapped edges and widths beyond the next rank need no special case.
std::vector<Segment> segments(const Grid& grid, int d, std::int64_t lo, std::int64_t hi, std::int64_t shadow_lo);

/// A box of cells that `owner` owns and `receiver` has in its shadow; extents in cells, local starts on both sides.
struct Piece {
  int owner = 0;
  int receiver = 0;
  std::int64_t seq = 0;  ///< equal on both ranks, unique between the two
  Index owner_at{};
  Index receiver_at{};
  Index count{};
  std::string direction;  ///< `-0+`, as the receiver sees it
};

/// The pieces in which `rank` is owner or receiver.
std::vector<Piece> halo_pieces(const Grid& grid, const Width& width, const Width& shadow, bool corners, int rank);

}  // namespace tasuki
