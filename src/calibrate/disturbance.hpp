// Disturbance: what else a host does while the machine is measured.
#pragma once

#include <cstdint>

#include "session/runtime.hpp"

namespace tasuki {

/// Cores that this rank's host and this process have used since it was made.
struct Usage {
  double seconds = 0;   ///< on the clock
  double host = -1;     ///< seconds of cores, by all processes of the host; below 0: not known
  double process = 0;   ///< by this one
  double switches = 0;  ///< how often this process had to give up its core
};

class UsageWatch {
 public:
  UsageWatch();
  Usage so_far() const;

 private:
  double begin_;
  Usage at_begin_;
};

/// The host's load of the last minute; below 0: not known.
double load_of_last_minute();

/// What others have used of rank 0's host, from what its ranks tell. `ranks`: how many these are.
struct Disturbance {
  int ranks = 0;
  double seconds = 0;   ///< on rank 0's clock
  double others = -1;   ///< cores; below 0: not known
  double switches = 0;  ///< a second, of the rank with most
};
/// Collective: the same on every rank.
Disturbance disturbance(Runtime& runtime, const Usage& mine);

}  // namespace tasuki
