// MPI's broadcasts: blocking, nonblocking and persistent.
#include <mpi.h>

#include "peer.hpp"
#include "peers/persistent.hpp"

namespace bench {
namespace {

class BlockingBroadcast : public Runner {
 public:
  explicit BlockingBroadcast(const BroadcastCase& b) : b_(b) {}
  void start() override { MPI_Bcast(b_.data, static_cast<int>(b_.bytes), MPI_BYTE, 0, b_.context.comm()); }

 private:
  BroadcastCase b_;
};

class NonblockingBroadcast : public Runner {
 public:
  explicit NonblockingBroadcast(const BroadcastCase& b) : b_(b) {}
  void start() override { MPI_Ibcast(b_.data, static_cast<int>(b_.bytes), MPI_BYTE, 0, b_.context.comm(), &request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  BroadcastCase b_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

#ifdef HAS_PERSISTENT_COLLECTIVES
class PersistentBroadcast : public PersistentCollective {
 public:
  explicit PersistentBroadcast(const BroadcastCase& b) {
    MPI_Bcast_init(b.data, static_cast<int>(b.bytes), MPI_BYTE, 0, b.context.comm(), MPI_INFO_NULL, &request_);
  }
};
#endif

template <class R>
Peer peer(const char* name) {
  return {.name = name,
          .halo = {},
          .transfer = {},
          .broadcast = [](const BroadcastCase& b) { return std::make_unique<R>(b); },
          .splits = false,
          .solo = false};
}

const RegisterPeer kBlocking(peer<BlockingBroadcast>("mpi_bcast"));
const RegisterPeer kNonblocking(peer<NonblockingBroadcast>("mpi_ibcast"));
#ifdef HAS_PERSISTENT_COLLECTIVES
const RegisterPeer kPersistent(peer<PersistentBroadcast>("mpi_bcast_init"));
#endif

}  // namespace
}  // namespace bench
