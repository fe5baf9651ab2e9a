// Makes the persistent request of a command, for both transports over MPI. All messages have type MPI_BYTE.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "transports/transport.hpp"

namespace tasuki {

/// The largest message that MPI accepts, in bytes.
constexpr std::int64_t kMostOfMpi = std::numeric_limits<int>::max();

/// Persistent requests, which are freed with it, also where making a later one fails.
class Requests {
 public:
  Requests() = default;
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  /// See `make_message`.
  void add(const ChannelRequest& request, const Command& command, std::byte* at);
  MPI_Request& operator[](std::size_t i) { return all_[i]; }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<MPI_Request> all_;
};

/// Makes an inactive request that sends or receives the command's bytes, at most kMostOfMpi, at `at`. It uses the
/// runtime's communicator for messages. All messages of a link have the same tag, so both ranks must start them in the
/// same order. Throws `Error` if there are too many links between two ranks, or more operations than MPI has tags.
MPI_Request make_message(const ChannelRequest& request, const Command& command, std::byte* at);

}  // namespace tasuki
