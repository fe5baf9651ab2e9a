// Reach: finds out which ranks of a host can map each other's shared memory.
#pragma once

#include <span>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/communicator.hpp"

namespace tasuki {

/// Opens the shared memory of `neighbours` to this rank. `neighbours` are the ranks of its host in ascending order,
/// this one included; `identities` belong to them. Files are opened through /proc. Where some rank cannot do that
/// (containers with process ids of their own, hidepid), descriptors are handed over. The ranks are divided into groups
/// whose members can all map each other. Memory of other groups is refused, with the reason. Returns the first rank of
/// each neighbour's group, the same on all ranks of a host. Collective over all ranks of the communicator.
std::vector<int> open_neighbours(Communicator& communicator, SharedMemory& memory, std::span<const int> neighbours,
                                 std::span<const SharedIdentity> identities);

/// Divides ranks into groups whose members can all map each other, in ascending order. `reaches[a][b]`: a can map b.
/// Returns for each index the first one of its group.
std::vector<std::size_t> groups_of(const std::vector<std::vector<bool>>& reaches);

}  // namespace tasuki
