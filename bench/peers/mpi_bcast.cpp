// MPI's broadcasts: blocking, nonblocking and persistent, which is MPI 4's, but Open MPI 5 has it although it says 3.1.
#include <mpi.h>

#include "peer.hpp"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT_BROADCAST
#endif

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

#ifdef HAS_PERSISTENT_BROADCAST
class PersistentBroadcast : public Runner {
 public:
  explicit PersistentBroadcast(const BroadcastCase& b) {
    MPI_Bcast_init(b.data, static_cast<int>(b.bytes), MPI_BYTE, 0, b.context.comm(), MPI_INFO_NULL, &request_);
  }
  PersistentBroadcast(const PersistentBroadcast&) = delete;
  PersistentBroadcast& operator=(const PersistentBroadcast&) = delete;
  ~PersistentBroadcast() override { MPI_Request_free(&request_); }
  void start() override { MPI_Start(&request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
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
#ifdef HAS_PERSISTENT_BROADCAST
const RegisterPeer kPersistent(peer<PersistentBroadcast>("mpi_bcast_init"));
#endif

}  // namespace
}  // namespace bench
