// Memory and events of one rank's GPU that the other ranks of its host open by CUDA's handles between processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tasuki/context.hpp"

struct CUevent_st;

namespace bench {

/// The same kind of memory of all ranks, as this process sees it.
class PeerMemory {
 public:
  /// `mine` is what cudaMalloc returned, and lives until all ranks have given up theirs. Collective; throws on all
  /// ranks if one cannot open another's.
  PeerMemory(const tasuki::Context& context, std::byte* mine);
  std::byte* of(int rank) const { return seen_[static_cast<std::size_t>(rank)].get(); }

 private:
  std::vector<std::shared_ptr<std::byte>> seen_;
};

/// An event for every rank and every other rank that may wait for it. A rank may wait for an event only after it has
/// been told that it was recorded: CUDA does not wait for what has yet to be.
class PeerEvents {
 public:
  /// Collective, as for memory.
  explicit PeerEvents(const tasuki::Context& context);
  CUevent_st* mine(int waiter) const { return mine_[static_cast<std::size_t>(waiter)].get(); }
  CUevent_st* theirs(int rank) const { return theirs_[static_cast<std::size_t>(rank)].get(); }  ///< made for this rank
  /// Gives the others' events back, which must come before any rank destroys its own. Local.
  void close() { theirs_.clear(); }

 private:
  using Event = std::shared_ptr<CUevent_st>;
  std::vector<Event> mine_;
  std::vector<Event> theirs_;
};

}  // namespace bench
