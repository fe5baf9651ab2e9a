// What the paths through MPI share: the persistent request of a command. MPI never sees a datatype other than bytes.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "engines/channel.hpp"

namespace tasuki {

/// A request, not started, that sends or receives the command's bytes at `at`, on the runtime's communicator for
/// messages. Throws `Error` if MPI cannot take so much at once, or if there are too many links between two ranks.
MPI_Request make_message(const ChannelRequest& request, std::byte* at);

}  // namespace tasuki
