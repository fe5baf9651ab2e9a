// Liveness: tells a wait whether the ranks that it depends on are still there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/topology.hpp"

namespace tasuki {

/// Every rank has a page in shared memory saying whether it has given up and because of whom; that and /proc tell the
/// ranks of a host about each other. Ranks that cannot map each other's memory are seen by /proc alone; those of other
/// hosts are only covered by deadlines and MPI's own errors.
class Liveness {
 public:
  Liveness(const Topology& topology, SharedMemory& memory, Communicator& communicator);  ///< Collective.

  /// Empty if none of `ranks` is known to be dead or to have given up (this rank itself never is); else a sentence:
  /// `rank 3 (pid 4711 on host a) has died` or `rank 2 gave up because rank 3 (pid ...) has died`. Costs a few
  /// microseconds; call it every few milliseconds of waiting, not in every spin.
  std::string failure(std::span<const int> ranks) const;

  /// This rank gives up for the reason given (the first 504 bytes are kept, and only the root of a chain of ranks that
  /// gave up because of each other); ranks that ask will be told. The first reason stays. Local.
  void give_up(const std::string& why);

 private:
  struct Page;
  const Topology& topology_;
  SharedMemory& memory_;
  std::shared_ptr<std::byte> page_;
  std::vector<std::shared_ptr<const Page>> pages_;  ///< null for ranks whose memory this one cannot map
};

}  // namespace tasuki
