// Times: what was measured of a path in a turn, and in several.
#pragma once

#include <array>
#include <vector>

#include "calibrate/path_timer.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

/// Seconds of each measured transfer, in one direction or in both at once.
struct Seconds {
  double word = 0, large = 0, scattered = 0, bulk = 0;
};

/// Of one turn. All members are doubles; what was not measured is 0.
struct Times {
  Seconds one_way, both_ways;
  double after = 0;  ///< of words that follow each other in one direction
};
using TimeList = std::array<double, sizeof(Times) / sizeof(double)>;

/// What is moved to measure a path, timed by `time(layout)`.
template <class Time>
Seconds seconds_for(const Time& time, bool on_gpu) {
  const Layout word = Layout::bytes(8);
  Seconds seconds;
  seconds.word = time(word);
  seconds.large = time(Layout::bytes(on_gpu ? kLargeOnGpu : kLarge));
  seconds.scattered = time(Layout::hvector(on_gpu ? kRunsOnGpu : kRuns, 1, on_gpu ? kStrideOnGpu : kStride, word));
  seconds.bulk = time(Layout::bytes(on_gpu ? kBulkOnGpu : kBulk));
  return seconds;
}

/// Each time of the turn in which it was least: whatever disturbs a machine makes times longer.
Times least_of(const std::vector<Times>& turns);
/// By what share the second least time is longer than the least, of the time where that is most: how often the least
/// was reached. 0 for a single turn.
double spread_of(const std::vector<Times>& turns);

}  // namespace tasuki
