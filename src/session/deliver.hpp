// Messages to ranks that do not know that they come.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "session/attempt.hpp"
#include "session/runtime.hpp"

namespace tasuki {

/// Tells each of `receivers` (ascending; this rank may be among them) what `tell(number of the receiver, to)` writes:
/// less than 2 GiB. Returns what is told to this rank, with the senders in ascending order. Throws on all ranks if the
/// attempt has failed on one. Collective; between processes it takes messages from senders to receivers, a barrier, and
/// the comparison whether all go on.
std::vector<std::pair<int, std::string>> deliver(Runtime& runtime, Attempt& attempt, const std::string& operation,
                                                 std::span<const int> receivers, const Attempt::Tell& tell,
                                                 const std::string& doing);

}  // namespace tasuki
