// The bound of the hardware: see bound.hpp.
#include "collectives/bound.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "paths/path.hpp"

namespace tasuki {

namespace {

// The larger of what the rank must send and what it must get.
std::int64_t bytes_of(const Collective& c, int rank) {
  const std::int64_t n = c.ranks();
  const std::int64_t whole = c.whole();
  switch (c.kind()) {
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      return whole;
    case CollectiveKind::allreduce:
      return 2 * (whole - whole / n);
    case CollectiveKind::allgather:
    case CollectiveKind::reduce_scatter:
      return std::max(whole - c.block(rank), c.block(rank));
    case CollectiveKind::alltoall:
      return std::max(c.sent(rank, c.ranks()), c.received(c.ranks(), rank)) - c.block(rank, rank);
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return rank == c.root() ? whole - c.block(rank) : c.block(rank);
  }
  return 0;
}

}  // namespace

Bound bound_of(const Machine& machine, const Collective& c) {
  Bound bound;
  if (c.ranks() < 2) return bound;
  for (int rank = 0; rank < c.ranks(); ++rank) bound.bytes = std::max(bound.bytes, bytes_of(c, rank));
  double latency = std::numeric_limits<double>::infinity();
  for (const Path& path : all_paths()) {
    if (path.memory != c.shape().memory || machine.unusable.contains(path.name)) continue;
    bool joins = false;
    for (int rank = 1; rank < c.ranks() && !joins; ++rank) joins = path.joins(machine, 0, rank);
    if (!joins) continue;
    for (const LinkCost& cost : {machine.cost(path.name).one_way, machine.cost(path.name).mutual}) {
      latency = std::min(latency, cost.latency);
      bound.bandwidth = std::max({bound.bandwidth, cost.bandwidth, cost.bulk_bandwidth});
    }
  }
  // Where every rank is a host of a network that is known, it can use several links at once, and no more.
  const std::set<int> islands(c.island().begin(), c.island().end());
  const Network& network = machine.outside;
  if (network.kind != Network::Kind::none && network.bandwidth > 0 && std::ssize(islands) == c.ranks()) {
    int links = network.rails;
    if (network.kind == Network::Kind::torus) {
      int leaving = 0;
      for (const int extent : network.extents) leaving += std::min(extent - 1, 2);
      links = std::clamp(leaving, 1, links);
    }
    bound.bandwidth = links * network.bandwidth;
  }
  if (bound.bandwidth > 0) bound.seconds = latency + static_cast<double>(bound.bytes) / bound.bandwidth;
  return bound;
}

}  // namespace tasuki
