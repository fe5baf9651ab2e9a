// Which steps of a lane must run one after the other when several thread blocks run the lane, each at its own pace.
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
  std::int32_t end = 0;     ///< index in the list of ends
  std::int8_t awaited = 0;  ///< bits: kAwaited if a thread waits for its end, kInBlock if later steps of the lane do
  std::int32_t after = -1;  ///< the end of an earlier step of the lane for which it waits; -1: none
  bool last = true;         ///< of the rounds of its loop
  bool alike = false;       ///< it reduces the elements that the move before it reduces, and may be dealt out alike
  bool single = false;      ///< a signal, given by a single thread when all blocks have ended what comes before it
  std::int32_t more = 0;    ///< steps right after it that are one with it (operands.hpp)
  std::int32_t counts_as = -1;  ///< if there are: its end counts as the end of this command
  bool joined = false;          ///< it is one with the first step before it that is not
  std::int32_t sends = 0;       ///< the last ones of these, so many, are puts of what the others make
};

/// The steps of the commands [first, end), with loops unrolled.
std::vector<LaneStep> unrolled(const Plan& plan, std::size_t first, std::size_t end);

/// Finds moves that touch bytes which earlier moves write, or write bytes which earlier moves read. These wait for the
/// earlier ones, except for reductions of the same elements that follow each other. Ends that are not a command's own
/// are added to `more_ends`.
void order_moves(const Plan& plan, std::vector<LaneStep>& steps, std::vector<std::int32_t>& more_ends);

/// Makes a single thread give the lane's signals. Commands in `spared` are left out: signals that need no thread, or
/// come first, and commands that are not signals but need not be waited for.
void single_out_signals(const Plan& plan, std::vector<LaneStep>& steps, const std::vector<bool>& spared,
                        std::vector<std::int32_t>& more_ends);

}  // namespace tasuki
