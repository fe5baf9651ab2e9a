// MPI's collectives: blocking, nonblocking and persistent.
#include <mpi.h>

#include "peer.hpp"
#include "peers/persistent.hpp"

namespace bench {
namespace {

using tasuki::CollectiveKind;

// Calls one of MPI's functions with the case's arguments and then `more`. `CALL(Allreduce)` is that form's function.
#define MPI_COLLECTIVE(CALL, ...)                                                                     \
  const auto count = static_cast<int>(c.count);                                                       \
  const MPI_Comm comm = c.context.comm();                                                             \
  const MPI_Datatype type = MPI_DOUBLE;                                                               \
  switch (c.kind) {                                                                                   \
    case CollectiveKind::broadcast:                                                                   \
      CALL(Bcast)(c.in, count, type, 0, comm __VA_OPT__(, ) __VA_ARGS__);                             \
      return true;                                                                                    \
    case CollectiveKind::allreduce:                                                                   \
      CALL(Allreduce)(c.in, c.out, count, type, MPI_SUM, comm __VA_OPT__(, ) __VA_ARGS__);            \
      return true;                                                                                    \
    case CollectiveKind::reduce:                                                                      \
      CALL(Reduce)(c.in, c.out, count, type, MPI_SUM, 0, comm __VA_OPT__(, ) __VA_ARGS__);            \
      return true;                                                                                    \
    case CollectiveKind::reduce_scatter:                                                              \
      CALL(Reduce_scatter_block)(c.in, c.out, count, type, MPI_SUM, comm __VA_OPT__(, ) __VA_ARGS__); \
      return true;                                                                                    \
    case CollectiveKind::allgather:                                                                   \
      CALL(Allgather)(c.in, count, type, c.out, count, type, comm __VA_OPT__(, ) __VA_ARGS__);        \
      return true;                                                                                    \
    case CollectiveKind::alltoall:                                                                    \
      CALL(Alltoall)(c.in, count, type, c.out, count, type, comm __VA_OPT__(, ) __VA_ARGS__);         \
      return true;                                                                                    \
    case CollectiveKind::gather:                                                                      \
      CALL(Gather)(c.in, count, type, c.out, count, type, 0, comm __VA_OPT__(, ) __VA_ARGS__);        \
      return true;                                                                                    \
    case CollectiveKind::scatter:                                                                     \
      CALL(Scatter)(c.in, count, type, c.out, count, type, 0, comm __VA_OPT__(, ) __VA_ARGS__);       \
      return true;                                                                                    \
    case CollectiveKind::scan:                                                                        \
      CALL(Scan)(c.in, c.out, count, type, MPI_SUM, comm __VA_OPT__(, ) __VA_ARGS__);                 \
      return true;                                                                                    \
    case CollectiveKind::exscan:                                                                      \
      CALL(Exscan)(c.in, c.out, count, type, MPI_SUM, comm __VA_OPT__(, ) __VA_ARGS__);               \
      return true;                                                                                    \
    case CollectiveKind::barrier:                                                                     \
      CALL(Barrier)(comm __VA_OPT__(, ) __VA_ARGS__);                                                 \
      return true;                                                                                    \
    default:                                                                                          \
      return false;                                                                                   \
  }

bool block(const CollectiveCase& c) {
#define BLOCKING(name) MPI_##name
  MPI_COLLECTIVE(BLOCKING)
}

bool begin(const CollectiveCase& c, MPI_Request* request) {
#define NONBLOCKING(name) MPI_I##name
// MPI's names have no capital after the I.
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_IBcast MPI_Ibcast
#define MPI_IReduce MPI_Ireduce
#define MPI_IReduce_scatter_block MPI_Ireduce_scatter_block
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IGather MPI_Igather
#define MPI_IScatter MPI_Iscatter
#define MPI_IScan MPI_Iscan
#define MPI_IExscan MPI_Iexscan
#define MPI_IBarrier MPI_Ibarrier
  MPI_COLLECTIVE(NONBLOCKING, request)
}

class Blocking : public Runner {
 public:
  explicit Blocking(const CollectiveCase& c) : c_(c) {}
  void start() override { block(c_); }

 private:
  CollectiveCase c_;
};

class Nonblocking : public Runner {
 public:
  explicit Nonblocking(const CollectiveCase& c) : c_(c) {}
  void start() override { begin(c_, &request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  CollectiveCase c_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

#ifdef HAS_PERSISTENT_COLLECTIVES
bool prepare(const CollectiveCase& c, MPI_Request* request) {
#define PERSISTENT(name) MPI_##name##_init
  MPI_COLLECTIVE(PERSISTENT, MPI_INFO_NULL, request)
}

class Persistent : public PersistentCollective {
 public:
  explicit Persistent(const CollectiveCase& c) { prepare(c, &request_); }
};
#endif

template <class R>
Peer peer(const char* name, bool splits) {
  Peer peer;
  peer.name = name;
  peer.collective = [](const CollectiveCase& c) -> RunnerPtr {
    return c.ring ? nullptr : std::make_unique<R>(c);  // mpi_ring.cpp
  };
  peer.splits = splits;
  return peer;
}

const RegisterPeer kBlocking(peer<Blocking>("mpi_coll", false));
const RegisterPeer kNonblocking(peer<Nonblocking>("mpi_icoll", true));
#ifdef HAS_PERSISTENT_COLLECTIVES
const RegisterPeer kPersistent(peer<Persistent>("mpi_coll_init", true));
#endif

}  // namespace
}  // namespace bench
