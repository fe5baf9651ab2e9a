// Prices: what each command of the plans of all ranks costs, and whom it meets. The first half of a prediction: from
// here on the walk (walk.hpp) only adds up.
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
/// takes just that: the command that moves the bytes has the seconds, the signal or message that makes them visible has
/// the latency, and signals that only permit (ready, credit, done) have no latency of their own. What packs or unpacks
/// costs a copy within the rank. Where both ranks send, a path of two passes was measured with both, one after the
/// other on each core: there the put has the price less that of unpacking, for the copy that unpacks has it.
struct Work {
  std::int32_t from = -1;  ///< ranks between which bytes cross; -1: they stay
  std::int32_t to = -1;
  std::int32_t meets = -1;  ///< counter (signal, wait) or channel (send, recv) of all ranks
  std::int64_t bytes = 0;   ///< that cross, in a round
  double seconds = 0;       ///< to move them
  double latency = 0;
  bool on_core = false;        ///< a core of the rank does it, one command after the other
  bool latency_keeps = false;  ///< the latency keeps that core busy
  std::int16_t resource = -1;  ///< hardware of the rank that does it otherwise: index into `Prices::hardware`
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

/// Of the plans of all ranks, in their order.
Prices priced(std::span<const Plan> plans, const Machine& machine);
/// Of one rank's plan. What its peers send it is known by its expectations only.
Prices priced_alone(const Plan& plan, const Machine& machine);

}  // namespace tasuki::detail
