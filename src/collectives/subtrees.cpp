// Subtrees: see subtrees.hpp.
#include "collectives/subtrees.hpp"

namespace tasuki {

Subtrees::Subtrees(const Collective& collective) : c_(collective), before_{0} {
  for (int place = 0; place < ranks(); ++place) before_.push_back(before_.back() + c_.block(rank(place)));
}

int Subtrees::end(int place) const {
  return place == 0 ? ranks() : std::min(place + (place & -place), ranks());
}

std::int64_t Subtrees::largest() const {
  std::int64_t most = 0;
  for (int place = 1; place < ranks(); ++place)
    if (!leaf(place)) most = std::max(most, bytes(place, end(place)));
  return most;
}

double subtree_seconds(const Collective& c, const Parameters&, const Price& price) {
  const auto bytes = static_cast<double>(c.whole() - c.block(c.root()));
  return doublings(c.ranks()) * price.latency + bytes * price.second_per_byte;
}

}  // namespace tasuki
