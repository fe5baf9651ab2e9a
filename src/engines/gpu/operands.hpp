// Which moves of a lane become one step of a GPU program: a copy and the reductions of the same elements that follow
// it, or several of these. Their sources are loaded together and the result is stored once; a reduction by itself
// would load and store the destination, and wait until all blocks have ended the move before it.
#pragma once

#include <functional>
#include <vector>

#include "engines/gpu/lanes.hpp"
#include "engines/gpu/order.hpp"

namespace tasuki {

/// Finds such moves among the steps of a lane. The first of them gets the number of the others, which come right after
/// it, and the waits between them come before it. `awaited` says on which commands other lanes depend; such a command
/// can only be the last of those that are joined.
void join_operands(const Program& program, const std::vector<bool>& awaited, std::vector<LaneStep>& steps);

/// Makes a put one with the step before it if it sends what that step makes: the result is stored in both places at
/// once. Otherwise all blocks would wait for each other between the two, and load the result again. Waits for credit to
/// put come before both. `plain`: sums of plain memory that are forwarded to plain memory. For lanes whose reductions
/// are `wide`, of 16 bytes at a time; `wide` says of a put whether it can be so, too. `lines`: what arrives in LL lines
/// and is forwarded in LL lines, to one rank or several: a warp forwards a line as soon as it has come.
void join_puts(const Program& program, const GpuLanes& lanes, const std::function<bool(const Command&)>& wide,
               bool plain, bool lines, std::vector<LaneStep>& steps);

}  // namespace tasuki
