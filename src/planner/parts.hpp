// Parts: pieces that two networks carry together, cut along their outermost dimension that has enough steps.
#pragma once

#include <optional>
#include <span>

#include "planner/planner.hpp"

namespace tasuki {

/// A piece is cut at one of so many places.
constexpr int kShares = 8;

/// Whether the move may be cut: it is large, one strided copy, and waits for nothing.
bool may_be_cut(const Move& move);

/// Cuts moves of the problem: so many of `kShares` shares of each are its first part; 0 and `kShares`: it is not cut.
/// Empty: none is.
std::optional<Problem> in_parts(const Problem& problem, std::span<const int> shares);

}  // namespace tasuki
