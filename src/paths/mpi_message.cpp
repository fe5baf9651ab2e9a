// Persistent requests: see mpi_message.hpp.
#include "paths/mpi_message.hpp"

#include <fmt/format.h>

#include "session/mpi.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

constexpr int kPerOperation = 64;  // tags, one a link between two ranks

// Operations are numbered alike on all ranks, so the number keeps their messages apart.
int tag_of(const ChannelRequest& r) {
  int flag = 0;
  int* upper = nullptr;
  mpi::Comm_get_attr(r.runtime.messages(), MPI_TAG_UB, static_cast<void*>(&upper), &flag);
  const std::int64_t room = (flag != 0 ? *upper : 32767) / kPerOperation;
  if (r.command.tag >= kPerOperation) {
    throw Error(
        fmt::format("rank {}: {}: more than {} links between two ranks", r.plan.rank, r.plan.operation, kPerOperation));
  }
  return static_cast<int>(r.operation % room) * kPerOperation + r.command.tag;
}

}  // namespace

MPI_Request make_message(const ChannelRequest& r, std::byte* at) {
  const Command& c = r.command;
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = static_cast<int>(c.bytes);
  const bool sends = c.verb == Verb::send;
  if (sends) mpi::Send_init(at, bytes, MPI_BYTE, c.peer, tag_of(r), r.runtime.messages(), &request);
  if (!sends) mpi::Recv_init(at, bytes, MPI_BYTE, c.peer, tag_of(r), r.runtime.messages(), &request);
  return request;
}

}  // namespace tasuki
