// Which bytes one rank sends to which when sections of arrays are assigned, or full shadows filled: no ranks that run.
#pragma once

#include <vector>

#include "shape.hpp"
#include "tasuki/layout.hpp"

namespace tasuki::xmp {

/// One side of an assignment: a range for each dimension of the array.
struct Side {
  const ArrayShape* array = nullptr;
  std::vector<Range> section;
};

/// What a rank has to do with another one.
struct Packet {
  int rank = 0;   ///< of the program
  Layout layout;  ///< of the memory of this rank's part
};

struct Moves {
  std::vector<Packet> sent;
  std::vector<Packet> received;
};

/// The assignment `to` = `from`. Dimensions in which a section has one element are passed over; the others correspond
/// in their order, or as `order` says: dimension j of what remains of `to` is dimension order[j] of what remains of
/// `from`. Where several nodes have a source's element, one of them is chosen: the receiver itself, if it has it.
/// Throws `Error` for sections that leave the arrays or do not fit. `rank` need not be a node of either.
Moves moves_of(const Side& to, const Side& from, int rank, const std::vector<int>& order = {});

/// Fills what the part has in memory and does not own, as far as `width` from the owned elements; where the shadow is
/// full, -1 means all. Without corners: only what lies outside in one dimension. No dimension may be cyclic.
Moves shadow_moves(const ArrayShape& array, const std::vector<Layers>& width, bool corners, int rank);

}  // namespace tasuki::xmp
