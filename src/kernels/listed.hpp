// Listed moves of a lowered plan that only moves data (tasuki/kernel/impl/listed.cuh): made and dealt out to a group's
// warps.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engines/gpu/program.hpp"
#include "kernels/barrier_free.hpp"
#include "tasuki/kernel/plan.cuh"

namespace tasuki {

/// The listed moves of a part.
struct DealtMoves {
  std::vector<ListedMove> moves;  ///< by block, then by warp, then in the order in which they are done
  std::vector<RowPlaces> places;  ///< of each move, of each of so many rows, by lane
  int rows = 1;
  int turns = 1;   ///< of a warp; one that has fewer ends with a move of no kind
  int blocks = 0;  ///< that have some: the first ones
};

/// The listed moves of all parts for a group of blocks of so many warps. None if the plan does more than move data
/// (jobs.hpp), or if a list would be long or cannot hold a place.
using ListedParts = std::array<DealtMoves, kPartsOfHandle>;
std::optional<ListedParts> listed_of(const GpuProgram& program, int blocks, int warps);

/// The same for a barrier-free group, and the lines that its blocks send and unpack. Or why it needs barriers.
struct ListedByCells {
  ListedParts parts;
  std::vector<LineOfBlock> lines;
};
std::variant<ListedByCells, std::string> listed_by_cells(const Plan& plan, const GpuProgram& program,
                                                         const BlockCells& cells, int warps);

}  // namespace tasuki
