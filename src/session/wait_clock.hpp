// WaitClock: how long a wait has lasted, for its deadline.
#pragma once

#include <algorithm>
#include <chrono>

namespace tasuki {

/// Time for which this process did not run does not count: where a job is suspended and continued, the ranks that it
/// waits for have stood still as well. So of the time between two readings only `kMost` counts; a wait reads the clock
/// far more often.
class WaitClock {
 public:
  static constexpr double kMost = 0.1;  ///< seconds

  WaitClock() : WaitClock(now()) {}
  explicit WaitClock(double time) : last_(time) {}

  /// Seconds that count since the clock was made.
  double read() { return read(now()); }
  /// The same for a clock that shows `time`, in seconds.
  double read(double time) {
    waited_ += std::clamp(time - last_, 0.0, kMost);
    last_ = time;
    return waited_;
  }

  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  double last_;
  double waited_ = 0;
};

}  // namespace tasuki
