// Reductions, broadcasts and barriers over a node set, of variables on the host or on GPUs.
#pragma once

#include <memory>
#include <optional>

#include "objects.hpp"
#include "tasuki/machine.hpp"
#include "work.hpp"

namespace tasuki::xmp {

/// The nodes that `on` names; null: the executing ones. They are those of this call from then on.
const NodeShape& nodes_on(xmp_desc_t on);

/// Runs them, or starts them under the id. Nodes that are not in the set return at once.
void reduce(int op, int count, const xmp_variable variables[], xmp_desc_t on, Memory where, std::optional<int> id);
void broadcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, Memory where, std::optional<int> id);
void barrier(xmp_desc_t on);

}  // namespace tasuki::xmp
