// Topology: which ranks share a host, and which can map each other's memory. Found once, when the context is made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "memory/shared_memory.hpp"
#include "session/communicator.hpp"

namespace tasuki {

struct Process {
  int host = 0;    ///< number of the host; ranks under one kernel have the same
  int island = 0;  ///< number of the island; its ranks may store into each other's memory
  int local = 0;   ///< index among the ranks of the host
  int group = 0;   ///< first rank of its group: ranks of its host that can all map each other's memory
  std::int64_t pid = 0;
  std::uint64_t born = 0;  ///< start time from /proc, which tells the process from a later one with its pid; 0: unknown
  int own_cores = 0;       ///< hardware threads on which it may run; a launcher may have left it few of the machine's
  int cores = 0;           ///< of all ranks of its host together
  std::string name;        ///< host name
};

struct Topology {
  int rank = 0;
  std::vector<Process> processes;  ///< index = rank
  int hosts = 0;
  int islands = 0;
  bool threads = false;  ///< the ranks are threads of one process, without MPI
  bool visible = false;  ///< whether /proc shows every process of this host, so that deaths are noticed

  int size() const { return static_cast<int>(processes.size()); }
  bool same_host(int a, int b) const { return processes[a].host == processes[b].host; }
  bool same_island(int a, int b) const { return processes[a].island == processes[b].island; }
  bool same_process(int a, int b) const { return a == b || threads; }
  /// Whether the ranks of its host outnumber the hardware threads on which they may run.
  bool crowded(int other) const;
  std::string called(int other) const;  ///< `rank 3`, or `rank 3 on host b` if that is another host
};

/// Finds out which ranks share a host and which can map each other's memory, and opens that memory to `memory`.
/// Collective. Every group becomes one island; a group is a whole host unless some of its ranks cannot map each other.
/// If `problem` is not empty on some rank, all ranks throw it.
Topology discover(Communicator& communicator, SharedMemory* memory, const std::string& problem = {});

/// Divides every group into islands of `island_size` ranks, in rank order; 0: every group is one island. Islands are
/// numbered in the order of their first ranks. Local.
void cut_islands(Topology& topology, int island_size);
/// For a part of `parent`: ranks of a group that share an island of `parent` become an island. `ranks` are their
/// numbers in `parent`. Local.
void inherit_islands(Topology& topology, const Topology& parent, std::span<const int> ranks);

}  // namespace tasuki
