// Fail points: see fail_point.hpp.
#include "support/fail_point.hpp"

#include <fmt/format.h>

#include <utility>

namespace tasuki {

thread_local int FailPoint::left = -1;

bool FailPoint::disarm() {
  return std::exchange(left, -1) < 0;
}

void FailPoint::hit(const char* step) {
  if (left-- > 0) return;
  throw Failure(fmt::format("{} was made to fail", step));
}

}  // namespace tasuki
