// The bound of the hardware: see bound.hpp.
#include "collectives/bound.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "paths/path.hpp"

namespace tasuki {

namespace {

// The larger of what a rank must send and what it must get.
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

// What all ranks together must send, divided by their number.
std::int64_t share_of_all(const Collective& c) {
  const std::int64_t n = c.ranks();
  std::int64_t bytes = 0;
  switch (c.kind()) {
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
    case CollectiveKind::allgather:
    case CollectiveKind::reduce_scatter:
      return c.whole() - c.whole() / n;  // each but one must get it all
    case CollectiveKind::allreduce:
      return 2 * (c.whole() - c.whole() / n);
    case CollectiveKind::alltoall:
      for (int rank = 0; rank < c.ranks(); ++rank) bytes += (c.sent(rank, c.ranks()) - c.block(rank, rank)) / n;
      return bytes;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (c.whole() - c.block(c.root())) / n;
  }
  return 0;
}

// In shared memory a rank's core moves what is sent to others as well as what is sent by them, so that at best all
// cores share the work. Otherwise a rank sends and gets its own. A root gets from many at a time, as far as is known,
// unless a network with ports joins them.
std::int64_t least_bytes(const Machine& machine, const Collective& c, bool one_island) {
  if (one_island && !c.on_gpu()) return std::max<std::int64_t>(share_of_all(c), c.whole() > 0 ? 1 : 0);
  const bool ports = (one_island ? machine.inside : machine.outside).kind != Network::Kind::none;
  const bool rooted = c.kind() == CollectiveKind::gather || c.kind() == CollectiveKind::scatter;
  std::int64_t bytes = 0;
  for (int rank = 0; rank < c.ranks(); ++rank)
    if (ports || !rooted || rank != c.root()) bytes = std::max(bytes, bytes_of(c, rank));
  return bytes;
}

// In the caches of processors any part of a message may move with the bandwidth of small ones. Between GPUs all bytes
// share the link.
double seconds_of(const PathCost& cost, const LinkCost& link, double bytes, bool on_gpu) {
  if (!on_gpu) {
    double most = std::max(link.bandwidth, link.bulk_bandwidth);
    for (const SizedBandwidth& one : link.by_size) most = std::max(most, one.bandwidth);
    return link.latency + bytes / most;
  }
  const double small = cost.bulk_from > 0 ? std::min(bytes, static_cast<double>(cost.bulk_from)) : bytes;
  return link.latency + small / link.bandwidth + (bytes - small) / link.bulk_bandwidth;
}

}  // namespace

Bound bound_of(const Machine& machine, const Collective& c) {
  Bound bound;
  if (c.ranks() < 2) return bound;
  const std::set<int> islands(c.island().begin(), c.island().end());
  bound.bytes = least_bytes(machine, c, islands.size() == 1);
  if (bound.bytes == 0 && c.kind() != CollectiveKind::barrier) return bound;
  const auto bytes = static_cast<double>(bound.bytes);
  double latency = std::numeric_limits<double>::infinity();
  for (const Path& path : all_paths()) {
    if (path.memory != c.shape().memory || machine.unusable.contains(path.name)) continue;
    bool joins = false;
    for (int rank = 1; rank < c.ranks() && !joins; ++rank) joins = path.joins(machine, 0, rank);
    if (!joins) continue;
    const PathCost& cost = machine.cost(path.name);
    for (const LinkCost& link : {cost.one_way, cost.mutual}) {
      const double seconds = seconds_of(cost, link, bytes, c.on_gpu());
      latency = std::min(latency, link.latency);
      if (bound.seconds > 0 && seconds >= bound.seconds) continue;
      bound.seconds = seconds;
      if (bytes > 0) bound.bandwidth = bytes / (seconds - link.latency);
    }
  }
  // Where every rank is a host of a network that is known, it can use several links at once, and no more.
  const Network& network = machine.outside;
  if (network.kind != Network::Kind::none && network.bandwidth > 0 && std::ssize(islands) == c.ranks()) {
    int links = network.rails;
    if (network.kind == Network::Kind::torus) {
      int leaving = 0;
      for (const int extent : network.extents) leaving += std::min(extent - 1, 2);
      links = std::clamp(leaving, 1, links);
    }
    bound.bandwidth = links * network.bandwidth;
    bound.seconds = latency + bytes / bound.bandwidth;
  }
  return bound;
}

}  // namespace tasuki
