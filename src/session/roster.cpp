// Roster: see roster.hpp.
#include "session/roster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "session/mpi.hpp"
#include "session/process.hpp"
#include "session/topology.hpp"
#include "session/wait_clock.hpp"

namespace tasuki {
namespace {

constexpr double kLookInterval = 2e-3;  // seconds
constexpr double kLookShare = 20;       // looks take at most 1/20 of the time ...
constexpr double kMostBetween = 0.1;    // ... but one that lost its core must not put off the next

struct Known {
  std::mutex mutex;
  std::map<int, Process> processes;  // of this host, by rank in MPI_COMM_WORLD
};

Known& known() {
  static auto* const one = new Known;  // contexts may be made until the program ends
  return *one;
}

/// The ranks in MPI_COMM_WORLD; MPI_UNDEFINED for processes that are not in it.
std::vector<int> world_ranks(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int size = 0;
  mpi::Comm_size(comm, &size);
  mpi::Comm_group(comm, &group);
  mpi::Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> found(ranks.size(), MPI_UNDEFINED);
  mpi::Group_translate_ranks(group, size, ranks.data(), world, found.data());
  mpi::Group_free(&group);
  mpi::Group_free(&world);
  return found;
}

}  // namespace

Roster::Roster(MPI_Comm comm) {
  const std::vector<int> world = world_ranks(comm);
  for (std::size_t rank = 0; rank < world.size(); ++rank)
    if (world[rank] != MPI_UNDEFINED) ranks_[world[rank]] = static_cast<int>(rank);
}

Roster::Roster(MPI_Comm comm, std::span<const int> ranks) : Roster(comm) {
  std::erase_if(ranks_, [&](const auto& one) { return std::ranges::find(ranks, one.second) == ranks.end(); });
}

std::string Roster::dead() {
  const double begin = WaitClock::now();
  if (begin < next_look_) return {};
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  for (const auto& [world, process] : all.processes) {
    const auto rank = ranks_.find(world);
    if (rank != ranks_.end() && life_of(process.pid, process.born) == Life::ended)
      return fmt::format("rank {} (pid {} on host {}) has died", rank->second, process.pid, process.name);
  }
  const double end = WaitClock::now();
  next_look_ = end + std::clamp(kLookShare * (end - begin), kLookInterval, kMostBetween);
  return {};
}

void Roster::learn(MPI_Comm comm, const Topology& topology) {
  if (!topology.visible) return;
  const std::vector<int> world = world_ranks(comm);
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  for (int rank = 0; rank < topology.size(); ++rank) {
    const int there = world[static_cast<std::size_t>(rank)];
    if (rank != topology.rank && there != MPI_UNDEFINED && topology.same_host(rank, topology.rank))
      all.processes[there] = topology.processes[static_cast<std::size_t>(rank)];
  }
}

}  // namespace tasuki
