// Reach: which ranks of a host can map each other's shared memory.
#pragma once

#include <span>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/communicator.hpp"

namespace tasuki {

/// Opens to this rank the memory of `neighbours`, the ranks of its host, itself among them, in ascending order, with
/// these identities: by /proc, or where that shows some of them nothing (containers with process numbers of their own,
/// hidepid), by files that are handed over. Returns for each neighbour the first rank of its group: the ranks of a
/// group can all map each other, and what lies in another group is refused, with the reason. The same on all ranks of a
/// host. Collective over all ranks of the communicator.
std::vector<int> open_neighbours(Communicator& communicator, SharedMemory& memory, std::span<const int> neighbours,
                                 std::span<const SharedIdentity> identities);

/// Cuts what reaches each other (`reaches[a][b]`: a can map b) into groups of which all do, in ascending order. The
/// index of the first of its group for each.
std::vector<std::size_t> groups_of(const std::vector<std::vector<bool>>& reaches);

}  // namespace tasuki
