// Topology: who can reach whom. Found once; the rest of Tasuki only asks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/communicator.hpp"

namespace tasuki {

struct Process {
  int host = 0;    ///< ranks with equal host share a machine
  int island = 0;  ///< ranks with equal island may store into each other's memory
  int local = 0;   ///< rank within the host
  int group = 0;   ///< first rank of those of its host that can all map each other's memory: itself at least
  std::int64_t pid = 0;
  std::uint64_t born =
      0;             ///< start time from /proc, so that a reused pid is not taken for the same process; 0: unknown
  std::string name;  ///< host name
};

struct Topology {
  int rank = 0;
  std::vector<Process> processes;  ///< index = rank
  int hosts = 0;
  int islands = 0;
  bool threads = false;  ///< the ranks are threads of one process, without MPI
  bool visible = false;  ///< every process of this host could be seen in /proc, so its death can be told

  int size() const { return static_cast<int>(processes.size()); }
  bool same_host(int a, int b) const { return processes[a].host == processes[b].host; }
  bool same_island(int a, int b) const { return processes[a].island == processes[b].island; }
  bool same_process(int a, int b) const { return a == b || threads; }
  std::string called(int other) const;  ///< `rank 3`, or `rank 3 on host b` where that is another host
};

/// Finds out who shares a host and who can map whose memory, and opens to `memory` what it can. Collective. Every group
/// is one island; that is a whole host, unless ranks cannot map each other. `problem`: if any rank has one, all throw
/// it.
Topology discover(Communicator& communicator, SharedMemory* memory, const std::string& problem = {});

/// Cuts every group into islands of `island_size` ranks, in rank order; 0 makes every group one island. Islands are
/// numbered in the order of their first ranks. Local.
void cut_islands(Topology& topology, int island_size);
/// Makes the ranks of a group that are in one island of `parent` an island. `ranks`: their numbers there. Local.
void inherit_islands(Topology& topology, const Topology& parent, std::span<const int> ranks);

}  // namespace tasuki
