// Roster: whether one of a communicator's ranks has died, before they have a context.
#pragma once

#include <mpi.h>

#include <span>
#include <string>
#include <unordered_map>

namespace tasuki {

struct Topology;

/// While a context is made there is no `Liveness` yet. A roster knows the ranks' processes from contexts that were made
/// before, or from a first step of this one. It looks in /proc, so it sees processes of this host.
class Roster {
 public:
  explicit Roster(MPI_Comm comm);
  Roster(MPI_Comm comm, std::span<const int> ranks);  ///< Only of these ranks.

  /// Empty, or a sentence such as `rank 2 (pid 4711 on host a) has died`. To be called often: most calls do not look.
  std::string dead();

  /// Remembers the processes of a context over `comm`, for all rosters of this process.
  static void learn(MPI_Comm comm, const Topology& topology);

 private:
  std::unordered_map<int, int> ranks_;  // rank in MPI_COMM_WORLD -> rank in the communicator
  double next_look_ = 0;
};

}  // namespace tasuki
