// Groups whose cells are known (KernelGroup::cells): checks the cells, and finds out with the other ranks whether the
// group can be barrier-free.
#pragma once

#include <optional>
#include <string>

#include "kernels/listed.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// How a group runs an operation.
struct GroupDeal {
  std::optional<ListedParts> barrier_free;  ///< what each block does, if the group is barrier-free
  std::string how;                          ///< for Operation::device_group
};

/// For Operation::device_group. `why`: why the group has barriers; empty: it is barrier-free.
std::string described(const KernelGroup& group, int threads, const std::string& why);

/// Throws if the cells cannot be. Local. `who`: names rank and operation.
void check_cells(const KernelGroup& group, const BlockCells& cells, const std::string& who);

/// Deals out a lowered plan to the group's blocks, of so many threads and warps. Collective over the context.
GroupDeal deal_group(Runtime& runtime, const Plan& plan, const KernelGroup& group, int threads, const BlockCells& cells,
                     int warps, const GpuProgram& lowered);

}  // namespace tasuki
