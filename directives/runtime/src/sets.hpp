// The nodes that a reference to nodes or to a template names.
#pragma once

#include "objects.hpp"

namespace tasuki::xmp {

/// This rank's coordinates among the nodes; false: it is none of them.
bool coordinates_in(const NodeShape& nodes, Coordinates& at);
/// The part of a dimension that the node at these coordinates owns.
int part_of(const Spread& spread, const Coordinates& at);
/// Of a template: the nodes that own some of the section. Null: all. Throws `Error` if there are none.
NodeShape nodes_in(xmp_desc_t on, const xmp_range section[]);

}  // namespace tasuki::xmp
