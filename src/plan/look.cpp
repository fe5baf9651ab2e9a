// Look: see look.hpp.
#include "plan/look.hpp"

#include "tasuki/planning.hpp"

namespace tasuki {

namespace {

void (*looks)() = nullptr;

}  // namespace

void set_planning_look(void (*look)()) {
  looks = look;
}

void detail::look() {
  if (looks != nullptr) looks();
}

}  // namespace tasuki
