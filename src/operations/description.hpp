// From the shape of one rank and the user's memory to a description: the one way in which operations are made.
#pragma once

#include <vector>

#include "operations/state.hpp"
#include "shapes/rank_shape.hpp"

namespace tasuki {

/// Checks the arguments of this rank, compares them with those of the other ranks, tells those that must know of them,
/// and lists what is moved. `memory`: an address for each of the shape's buffers, in their order; null or `in_place` is
/// the shape's to refuse. Its kind is found: one kind on all ranks. Collective over the context. Throws the same
/// `Error` on every rank if the arguments of one are wrong, differ where they must agree, or do not fit together; but
/// what only ranks that hear of each other can find is kept for the description's next comparison.
Description description_of(const Context& context, RankShape& shape, const std::vector<const void*>& memory);

/// The same where all ranks know the kind of memory, and hear nothing: the problem's buffers, in their order. Local:
/// arguments are compared, and the complaint is thrown, when the options are.
Description description_with(const Context& context, RankShape& shape, std::vector<UserBuffer> buffers);

}  // namespace tasuki
