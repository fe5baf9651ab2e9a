// Collective calls among the ranks of a context. They have the context's deadline and notice dead ranks, as every wait
// does.
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

/// Returns rank 0's text on every rank and ignores the texts of the others. Collective.
std::string text_of_root(Runtime& runtime, const std::string& text, const std::string& doing);

/// Calls `local` on every rank. If it throws on a rank, all ranks throw an `Error` with that rank's number and the
/// exception's text. Collective.
void all_do(Runtime& runtime, const std::string& operation, const std::function<void()>& local);

}  // namespace tasuki
