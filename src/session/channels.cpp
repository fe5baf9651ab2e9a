// Channels: see channels.hpp.
#include "session/channels.hpp"

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {

std::int64_t Channels::lowest(int peer) const {
  const auto pair = pairs_.find(peer);
  return pair == pairs_.end() ? 0 : pair->second.next;
}

void Channels::take(int peer, std::int64_t channel) {
  Pair& pair = pairs_[peer];
  if (channel < pair.next)
    throw Error(fmt::format("rank {}: number {} with rank {} has been taken before (a defect in Tasuki)", rank_,
                            channel, peer));
  const auto [held, fresh] = pair.held.try_emplace(channel % places_, channel);
  if (!fresh)
    throw Error(
        fmt::format("rank {}: the message tags with rank {} are used up: {} operations fit, and the one before number "
                    "{} that has its place, number {}, has not been freed; free operations that are not needed",
                    rank_, peer, places_, channel, held->second));
  pair.next = channel + 1;
}

void Channels::give_back(int peer, std::int64_t channel) {
  const auto pair = pairs_.find(peer);
  if (pair == pairs_.end()) return;
  const auto held = pair->second.held.find(channel % places_);
  if (held != pair->second.held.end() && held->second == channel) pair->second.held.erase(held);
}

int Channels::tag(std::int64_t channel, int link) const {
  if (link < 0 || link >= kLinks)
    throw Error(fmt::format("rank {}: link {} between two ranks; an operation can have {}", rank_, link, kLinks));
  return static_cast<int>(channel % places_) * kLinks + link;
}

}  // namespace tasuki
