// How GPUs run the lanes of a plan, as far as prices depend on it: what is one pass over memory
// (engines/gpu/operands.hpp), what is forwarded as it arrives, and where the blocks of a lane signal and proceed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tasuki/plan.hpp"

namespace tasuki::detail {

bool moves_bytes(Verb verb);

/// Whether the kernel does a move and the reduction after it in one pass. `next` is the reduction's number.
bool goes_on(const Plan& plan, std::size_t command, std::size_t& next);
/// Whether no further operand follows in the same pass, and the result is not sent in it.
bool ends_pass(const Plan& plan, std::size_t command);
/// What a GPU loads and stores for a move within its memory, relative to a copy. The operands of a pass are loaded once
/// and the result is stored once. Where one of them comes from another GPU, or the result goes there, that takes longer
/// than all the others.
double share_of_pass(const Plan& plan, std::size_t command);

/// Whether all that the command moves is contiguous, and `buffer` is memory of LL lines.
bool in_lines(const Plan& plan, std::int32_t buffer, const Command& command);
/// Whether more LL lines are unpacked in the same pass after the command's. All come at the same time.
bool more_lines(const Plan& plan, std::size_t command);
/// Whether a put sends what the lane has added up right before it.
bool sends_sum(const Plan& plan, std::size_t command);
/// Whether a put forwards LL lines as the lane unpacks or adds them up.
bool sends_lines_on(const Plan& plan, std::size_t command);
/// Whether the lane puts the same bytes into LL lines of another rank after this put.
bool puts_again(const Plan& plan, std::size_t command);
/// Whether the lane sends on in LL lines, as it arrives, what the command copies out of such lines, or adds up.
bool hands_on(const Plan& plan, std::size_t command);

}  // namespace tasuki::detail
