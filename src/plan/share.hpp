// Plans with what is equal in memory once.
#pragma once

#include "tasuki/plan.hpp"

namespace tasuki {

/// Copies that have equal dimensions share them, and keep no others; buffers of one name share it.
void share(Plan& plan);

}  // namespace tasuki
