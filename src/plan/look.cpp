// Look: see look.hpp.
#include "plan/look.hpp"

#include <atomic>

#include "tasuki/planning.hpp"

namespace tasuki {

namespace {

std::atomic<void (*)()> looks{nullptr};

}  // namespace

void set_planning_look(void (*look)()) {
  looks = look;
}

void detail::look() {
  if (void (*const wanted)() = looks) wanted();
}

}  // namespace tasuki
