// Which steps of a lane must come one after the other when several thread blocks run it, each of them at its own pace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/host/executor.hpp"

namespace tasuki {

/// A command in one round of its loop, as a step of a lane.
struct LaneStep {
  std::int32_t command = 0;
  std::int64_t round = 0;
  std::int32_t end = 0;     ///< its place in the list of ends
  std::int8_t awaited = 0;  ///< bits: kAwaited, a thread tells when it has ended; kMet, later steps of the lane wait
  std::int32_t after = -1;  ///< the end of the lane that it has to wait for
  bool last = true;         ///< of its loop's rounds
  bool alike = false;       ///< it reduces the elements that the move before it reduces, and may be dealt out alike
  bool told = false;        ///< a signal that a thread gives when what comes before it has ended in all blocks
};

/// The steps of the commands [first, end), with loops unrolled.
std::vector<LaneStep> unrolled(const Plan& plan, std::size_t first, std::size_t end);

/// Finds the moves that touch bytes which earlier ones write, or write what earlier ones read. They wait for those, but
/// for reductions of the same elements that follow each other. Ends that are not a command's own go into `more_ends`.
void order_moves(const Plan& plan, std::vector<LaneStep>& steps, std::vector<std::int32_t>& more_ends);

/// Lets a thread give the lane's signals, except those of commands marked in `spared`, which need no telling or come
/// first. `spared` commands that are not signals do not count either.
void tell_apart(const Plan& plan, std::vector<LaneStep>& steps, const std::vector<bool>& spared,
                std::vector<std::int32_t>& more_ends);

}  // namespace tasuki
