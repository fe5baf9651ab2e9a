// Reductions, broadcasts and barriers over a node set, of variables on the host or on GPUs.
#pragma once

#include <memory>
#include <optional>

#include "objects.hpp"
#include "tasuki/machine.hpp"
#include "work.hpp"
#include "xacc.h"

namespace tasuki::xmp {

/// The nodes that `on` names; null: the executing ones. They are those of this call from then on.
const NodeShape& nodes_on(xmp_desc_t on);

/// When a call returns: when all has ended, or at once; then what it has begun has an async id, or is work of a queue.
struct Until {
  std::optional<int> id = {};
  int queue = XACC_SYNC;  ///< of memory on GPUs, without an id
};

/// Nodes that are not in the set return at once.
void reduce(int op, int count, const xmp_variable variables[], xmp_desc_t on, Memory where, const Until& until);
void reduce_with_locations(int op, const xmp_variable& v, int locations, const xmp_variable location[], xmp_desc_t on,
                           Memory where, const Until& until);
void broadcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, Memory where, const Until& until);
void barrier(xmp_desc_t on);

}  // namespace tasuki::xmp
