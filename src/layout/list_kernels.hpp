// Copies with lists: gather, scatter, and from list to list.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// The function for a copy with lists.
CopyFunction select_list_copy(const StridedCopy& copy, CopyHint hint);

}  // namespace tasuki
