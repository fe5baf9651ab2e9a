// Collective calls of a context's ranks that fail like every other wait instead of hanging when a rank has died.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "session/runtime.hpp"

namespace tasuki {

/// Bitwise AND of each word over all ranks. Collective.
std::vector<std::uint64_t> and_over_ranks(Runtime& runtime, const std::vector<std::uint64_t>& words,
                                          const std::string& doing);

/// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(Runtime& runtime, const std::string& text, const std::string& doing);

/// Rank 0's text on every rank; what others pass does not count. Collective.
std::string text_of_root(Runtime& runtime, const std::string& text, const std::string& doing);

/// Calls `local`; if it throws an exception on one rank, all ranks throw an `Error` with its text and that rank's
/// number. Collective.
void all_do(Runtime& runtime, const std::string& operation, const std::function<void()>& local);

}  // namespace tasuki
