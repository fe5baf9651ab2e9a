// A persistent collective of MPI's as a peer: MPI 4's, but Open MPI 5 has them although it says 3.1.
#pragma once

#include <mpi.h>

#include "peer.hpp"

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT_COLLECTIVES

namespace bench {

/// Starts `request_`, which a derived class makes, and waits for it.
class PersistentCollective : public Runner {
 public:
  PersistentCollective(const PersistentCollective&) = delete;
  PersistentCollective& operator=(const PersistentCollective&) = delete;
  ~PersistentCollective() override { MPI_Request_free(&request_); }
  void start() override { MPI_Start(&request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 protected:
  PersistentCollective() = default;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace bench

#endif
