// Persistent requests: see mpi_message.hpp.
#include "transports/mpi_message.hpp"

#include "session/mpi.hpp"
#include "session/runtime.hpp"
#include "support/fail_point.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

MPI_Request make_message(const ChannelRequest& r, const Command& c, std::byte* at) {
  FailPoint::pass("making a message");
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = static_cast<int>(c.bytes);
  const bool sends = c.verb == Verb::send;
  const int tag = r.runtime.channels().tag(r.number(c.peer), c.tag);
  if (sends) mpi::Send_init(at, bytes, MPI_BYTE, c.peer, tag, r.runtime.messages(), &request);
  if (!sends) mpi::Recv_init(at, bytes, MPI_BYTE, c.peer, tag, r.runtime.messages(), &request);
  return request;
}

Requests::~Requests() {
  if (!mpi_running()) return;
  for (MPI_Request& request : all_)
    if (request != MPI_REQUEST_NULL) mpi::calls().Request_free(&request);
}

void Requests::add(const ChannelRequest& request, const Command& command, std::byte* at) {
  MPI_Request& added = all_.emplace_back(MPI_REQUEST_NULL);
  added = make_message(request, command, at);
}

}  // namespace tasuki
