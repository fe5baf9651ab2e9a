// Fail points: places at which making an operation may fail. Tests let each of them fail in turn, and check that no
// rank is left with something that the others have not. In programs a fail point costs one comparison.
#pragma once

#include <stdexcept>

namespace tasuki {

class FailPoint {
 public:
  class Failure : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  /// Throws `Failure` if a test has asked this thread for it.
  static void pass(const char* step) {
    if (left >= 0) [[unlikely]]
      hit(step);
  }

  /// Lets the fail point that this thread passes after `steps` others throw, once.
  static void arm(int steps) { left = steps; }
  /// No fail point throws from now on. Returns whether one has thrown since `arm`.
  static bool disarm();

 private:
  static void hit(const char* step);
  static thread_local int left;  // below 0: nothing is asked for
};

}  // namespace tasuki
