// Deadlines count the time for which a process ran.
#include "session/wait_clock.hpp"

#include <doctest/doctest.h>

using tasuki::WaitClock;

TEST_CASE("a wait's clock counts what it is read for, and not that its process stood still") {
  WaitClock clock(1000);
  double time = 1000;
  for (int i = 0; i < 100; ++i) clock.read(time += 0.01);
  CHECK(clock.read(time) == doctest::Approx(1.0));
  CHECK(clock.read(time += 3600) == doctest::Approx(1.0 + WaitClock::kMost));  // it was suspended for an hour
  for (int i = 0; i < 100; ++i) clock.read(time += 0.01);
  CHECK(clock.read(time) == doctest::Approx(2.0 + WaitClock::kMost));
  CHECK(clock.read(time - 5) == doctest::Approx(2.0 + WaitClock::kMost));  // it never goes back
}
