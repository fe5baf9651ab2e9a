// Liveness: tells a wait whether a rank that it depends on has died or given up.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/topology.hpp"

namespace tasuki {

/// Every rank has a page in shared memory that says whether it has given up, and why. The ranks of a host read each
/// other's pages, and /proc says whether the processes run. For ranks that cannot map each other's memory there is
/// /proc alone. For ranks of other hosts there are only deadlines and MPI's own errors.
class Liveness {
 public:
  Liveness(const Topology& topology, SharedMemory& memory, Communicator& communicator);  ///< Collective.

  /// Empty if none of `ranks` is known to have died or given up; this rank itself never counts. Else a sentence, such
  /// as `rank 3 (pid 4711 on host a) has died` or `rank 2 gave up because rank 3 (pid ...) has died`. A call takes a
  /// few microseconds, so a wait calls it every few milliseconds only. A rank that has dropped `operation` (0: none)
  /// counts too.
  std::string failure(std::span<const int> ranks, std::uint64_t operation = 0) const;

  /// The same for what may have followed from a death that is not known yet: waits up to a second for it.
  std::string failure_soon(std::span<const int> ranks) const;

  /// Writes into this rank's page that it has given up, and why. Only the first call counts. At most 504 bytes of the
  /// reason are kept. If ranks gave up because of each other, only the first cause is kept. Local.
  void give_up(const std::string& why);

  /// Writes into this rank's page that it has destroyed this operation in the middle of an epoch, and will not go on
  /// with it. `operation` is a number on which its ranks agree (`Runtime::number_of`). The last few drops are kept.
  /// Local.
  void drop(std::uint64_t operation, const std::string& why);

 private:
  struct Page;
  const Topology& topology_;
  SharedMemory& memory_;
  std::shared_ptr<std::byte> page_;
  std::size_t drops_ = 0;
  std::vector<std::shared_ptr<const Page>> pages_;  ///< by rank; null if this rank cannot map that one's memory
};

}  // namespace tasuki
