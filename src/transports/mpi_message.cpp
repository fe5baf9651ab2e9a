// Persistent requests: see mpi_message.hpp.
#include "transports/mpi_message.hpp"

#include <fmt/format.h>

#include "session/mpi.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kPerOperation = 64;  // tags, one a link between two ranks

// Operations that two ranks make together are numbered alike on both, so the number keeps their messages apart.
int tag_of(const ChannelRequest& r, const Command& c) {
  int flag = 0;
  int* upper = nullptr;
  check_mpi(MPI_Comm_get_attr(r.runtime.messages(), MPI_TAG_UB, static_cast<void*>(&upper), &flag),
            "MPI_Comm_get_attr");
  const std::int64_t most = flag != 0 ? *upper : 32767;
  if (c.tag >= kPerOperation) {
    throw Error(
        fmt::format("rank {}: {}: more than {} links between two ranks", r.plan.rank, r.plan.operation, kPerOperation));
  }
  const std::int64_t tag = r.number(c.peer) * kPerOperation + c.tag;
  if (tag > most) {
    throw Error(fmt::format("rank {}: {}: ranks {} and {} have made {} operations together, which takes more tags than "
                            "this MPI has ({}); make operations once and start them often, or make another context",
                            r.plan.rank, r.plan.operation, r.plan.rank, c.peer, r.number(c.peer), most));
  }
  return static_cast<int>(tag);
}

}  // namespace

MPI_Request make_message(const ChannelRequest& r, const Command& c, std::byte* at) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = static_cast<int>(c.bytes);
  const bool sends = c.verb == Verb::send;
  check_mpi(sends ? MPI_Send_init(at, bytes, MPI_BYTE, c.peer, tag_of(r, c), r.runtime.messages(), &request)
                  : MPI_Recv_init(at, bytes, MPI_BYTE, c.peer, tag_of(r, c), r.runtime.messages(), &request),
            sends ? "MPI_Send_init" : "MPI_Recv_init");
  return request;
}

}  // namespace tasuki
