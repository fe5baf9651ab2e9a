// Messages of `post` and `wait`.
#pragma once

#include <mpi.h>

#include "tasuki/context.hpp"

namespace tasuki::xmp {

void start_posts(const Context& context);
void end_posts();
/// The communicator of these messages, whose tags 1 and 2 are free for others.
MPI_Comm posts_comm();

}  // namespace tasuki::xmp
