// MPI's neighbour collectives along the ring of all ranks: blocking, nonblocking and persistent.
#include <mpi.h>

#include <array>

#include "peer.hpp"
#include "peers/persistent.hpp"

namespace bench {
namespace {

using tasuki::CollectiveKind;

// The ring as MPI knows it; its communicator goes when the runner does.
class Ring {
 public:
  explicit Ring(const CollectiveCase& c) : c_(c) {
    const std::array from{c.last(), c.next()};
    const std::array to{c.next(), c.last()};
    MPI_Dist_graph_create_adjacent(c.context.comm(), 2, from.data(), MPI_UNWEIGHTED, 2, to.data(), MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm_);
  }
  ~Ring() { MPI_Comm_free(&comm_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Calls one of the two functions with the case's arguments and then `more`.
  template <class Allgather, class Alltoall, class... More>
  void call(Allgather allgather, Alltoall alltoall, More... more) const {
    const auto count = static_cast<int>(c_.count);
    const MPI_Datatype type = MPI_DOUBLE;
    if (c_.kind == CollectiveKind::alltoall) {
      alltoall(c_.in, count, type, c_.out, count, type, comm_, more...);
    } else {
      allgather(c_.in, count, type, c_.out, count, type, comm_, more...);
    }
  }

 private:
  CollectiveCase c_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class Blocking : public Runner {
 public:
  explicit Blocking(const CollectiveCase& c) : ring_(c) {}
  void start() override { ring_.call(MPI_Neighbor_allgather, MPI_Neighbor_alltoall); }

 private:
  Ring ring_;
};

class Nonblocking : public Runner {
 public:
  explicit Nonblocking(const CollectiveCase& c) : ring_(c) {}
  void start() override { ring_.call(MPI_Ineighbor_allgather, MPI_Ineighbor_alltoall, &request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  Ring ring_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

#ifdef HAS_PERSISTENT_COLLECTIVES
class Persistent : private Ring, public PersistentCollective {
 public:
  explicit Persistent(const CollectiveCase& c) : Ring(c) {
    call(MPI_Neighbor_allgather_init, MPI_Neighbor_alltoall_init, MPI_INFO_NULL, &request_);
  }
};
#endif

template <class R>
Peer peer(const char* name, bool splits) {
  Peer peer;
  peer.name = name;
  peer.collective = [](const CollectiveCase& c) -> RunnerPtr { return c.ring ? std::make_unique<R>(c) : nullptr; };
  peer.splits = splits;
  return peer;
}

const RegisterPeer kBlocking(peer<Blocking>("mpi_neighbor_coll", false));
const RegisterPeer kNonblocking(peer<Nonblocking>("mpi_ineighbor_coll", true));
#ifdef HAS_PERSISTENT_COLLECTIVES
const RegisterPeer kPersistent(peer<Persistent>("mpi_neighbor_coll_init", true));
#endif

}  // namespace
}  // namespace bench
