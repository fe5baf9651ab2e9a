// Messages of `post` and `wait`.
#pragma once

#include "tasuki/context.hpp"

namespace tasuki::xmp {

void start_posts(const Context& context);
void end_posts();

}  // namespace tasuki::xmp
