// Collective calls of a context's ranks that fail like every other wait instead of hanging when a rank has died.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/runtime.hpp"

namespace tasuki {

/// Bitwise AND of each word over all ranks. Collective.
std::vector<std::uint64_t> and_over_ranks(Runtime& runtime, const std::vector<std::uint64_t>& words,
                                          const std::string& doing);

/// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(Runtime& runtime, const std::string& text, const std::string& doing);

/// Rank 0's text on every rank; what others pass does not count. Collective.
std::string text_of_root(Runtime& runtime, const std::string& text, const std::string& doing);

}  // namespace tasuki
