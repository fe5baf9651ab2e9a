// Prices: what each command of the plans of all ranks costs, and with which command of another rank it is matched. This
// is the first half of a prediction; the second half, the walk (walk.hpp), only adds up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"

namespace tasuki::detail {

/// A command with its price. Commands of all ranks are numbered one after the other.
///
/// The price of a path was measured from the start of a transfer to its arrival. It is divided so that a link by itself
/// takes the measured time: the command that moves the bytes has the seconds, the signal or message that makes them
/// visible has the latency, and signals that only permit (ready, credit, done) have no latency. Packing and unpacking
/// cost a copy within the rank. Where both ranks send, a path of two passes was measured with both passes, one after
/// the other on each core. There the put has the price less that of unpacking, because the command that unpacks has its
/// own price. One way on hosts that is so of the last slice only, because the others are unpacked meanwhile. Contiguous
/// LL lines are unpacked as they arrive, so unpacking costs nothing more. A rank that forwards them begins before the
/// last one has come, so the signal of such a put counts as seen when the first lines have come.
struct Work {
  std::int32_t from = -1;  ///< ranks between which bytes cross; -1: the bytes stay on the rank
  std::int32_t to = -1;
  bool outside = false;  ///< they cross by the network `outside`
  double collision = 1;  ///< `Network::collision`; below 1 the hardware serves one lane after the other
  /// number of the counter (signal, wait) or channel (send, recv) by which commands of two ranks are matched
  std::int32_t matched_by = -1;
  std::int32_t per_epoch = 0;  ///< signal, wait: how far that counter advances in one
  std::int64_t bytes = 0;      ///< that cross, in one round
  double seconds = 0;          ///< to move them
  double latency = 0;
  double tail = 0;             ///< of the seconds: those for which a rank that forwards does not wait
  bool on_core = false;        ///< a core of the rank does the work, one command after the other
  bool latency_keeps = false;  ///< that core is busy during the latency, too
  bool by_receiver = false;    ///< a long message within a host: the receiver's core copies it
  /// if no core does the work, the hardware of the rank that does: index into `Prices::hardware`
  std::int16_t resource = -1;
  std::int16_t into = -1;  ///< likewise, what the bytes enter at rank `to`
};

struct Prices {
  std::vector<Work> work;             ///< of all ranks
  std::vector<std::int32_t> first;    ///< per rank, its first command; one more at the end
  std::vector<std::string> hardware;  ///< kinds of hardware: `GPU`, `copy engine`
  std::int32_t counters = 0;
  std::int32_t channels = 0;
  std::vector<std::string> guessed;  ///< paths without measured prices
  std::int64_t between_islands = 0;  ///< bytes of an epoch
};

/// Prices for the plans of all ranks, in their order.
Prices priced(std::span<const Plan> plans, const Machine& machine);
/// Prices for one rank's plan. Of its peers only what its expectations say is known.
Prices priced_alone(const Plan& plan, const Machine& machine);

}  // namespace tasuki::detail
