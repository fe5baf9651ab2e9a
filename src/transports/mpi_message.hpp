// What the transports through MPI share: the persistent request of a command. MPI never sees a datatype other than
// bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "transports/transport.hpp"

namespace tasuki {

/// The largest message that MPI takes.
constexpr std::int64_t kMostOfMpi = std::numeric_limits<int>::max();

/// A request, not started, that sends or receives the command's bytes at `at`, on the runtime's communicator for
/// messages; at most kMostOfMpi bytes. Messages of one link have one tag, so both sides must start them in one order.
/// Throws `Error` if there are too many links between two ranks, or if the ranks have made more operations than MPI has
/// tags.
MPI_Request make_message(const ChannelRequest& request, const Command& command, std::byte* at);

}  // namespace tasuki
