// TimedCollective: a collective that is made with a candidate's algorithm, parameters and paths, to be timed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/candidates.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/device.hpp"
#include "tasuki/graph.hpp"

namespace tasuki {

/// Memory for measuring, so much for what is given and for what comes. On hosts it is shared by the ranks, or not.
/// Collective.
struct Room {
  Room(const Context& context, Memory memory, std::int64_t bytes, bool is_shared);
  bool shared;
  std::shared_ptr<std::byte> in, out;
};

/// The largest of the ranks' numbers, on all of them. Collective.
double largest(const Context& context, double mine);

class TimedCollective {
 public:
  /// Of numbers of 8 bytes, or of bytes for a broadcast; `shape` says how many. `room` lives longer. Collective.
  TimedCollective(const Context& context, const CollectiveShape& shape, const Candidate& candidate, const Room& room);

  /// Finds how many epochs take so many seconds. Collective, like `once`.
  void prepare(double seconds);
  /// Seconds of an epoch on the slowest rank: on hosts with a barrier before it, so that all start together, on GPUs of
  /// epochs that follow each other in a graph.
  double once();
  /// Of the barrier alone; 0 on GPUs.
  double barrier_once();

 private:
  double host_seconds(int epochs, bool barrier_only);
  double gpu_seconds(int launches);

  Context context_;
  Operation operation_;
  std::optional<Barrier> barrier_;  // hosts
  std::optional<Fork> fork_;        // GPUs
  Stream stream_{};
  std::optional<Graph> graph_;
  int repeats_ = 1;
};

}  // namespace tasuki
