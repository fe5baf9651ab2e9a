// Subtrees of the binomial tree over ranks counted from the root: what gather and scatter along it have in common. The
// subtree of a place is that place and those above it up to the next one at a greater distance; its blocks lie one
// after the other in the order of the places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/algorithm.hpp"

namespace tasuki {

class Subtrees {
 public:
  explicit Subtrees(const Collective& collective);

  int ranks() const { return c_.ranks(); }
  int rank(int place) const { return (place + c_.root()) % c_.ranks(); }
  /// One past the last place of the subtree.
  int end(int place) const;
  bool leaf(int place) const { return end(place) == place + 1; }
  /// Bytes of the blocks of places `first` to `end`.
  std::int64_t bytes(int first, int end) const {
    return before_[static_cast<std::size_t>(end)] - before_[static_cast<std::size_t>(first)];
  }
  /// The largest subtree's below the root, leaves apart.
  std::int64_t largest() const;

  /// Calls `move(at the root, in the subtree, bytes)` for the subtree's blocks as the root has them, in the order of
  /// the ranks: one run, or two where they go on at rank 0.
  template <class Visit>
  void at_root(int place, Visit&& move) const {
    const int turn = std::clamp(c_.ranks() - c_.root(), place, end(place));  // the place of rank 0
    if (turn > place) move(c_.begin(rank(place)), std::int64_t{0}, bytes(place, turn));
    if (turn < end(place)) move(c_.begin(rank(turn)), bytes(place, turn), bytes(turn, end(place)));
  }

 private:
  const Collective& c_;
  std::vector<std::int64_t> before_;  // bytes of the places before each
};

/// ceil(log2 n) latencies, and all bytes but the root's through the root.
double subtree_seconds(const Collective& collective, const Parameters& parameters, const Price& price);

}  // namespace tasuki
