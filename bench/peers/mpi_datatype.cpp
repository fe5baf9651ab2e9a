// A strided block as a vector datatype, with persistent requests.
#include <mpi.h>

#include "peer.hpp"

namespace bench {
namespace {

class DatatypeTransfer : public Runner {
 public:
  explicit DatatypeTransfer(const TransferCase& t) : rank_(t.context.rank()) {
    MPI_Comm_dup(t.context.comm(), &comm_);
    if (rank_ > 1) return;
    MPI_Type_vector(static_cast<int>(t.rows), static_cast<int>(t.columns), static_cast<int>(t.stride), MPI_DOUBLE,
                    &block_);
    MPI_Type_commit(&block_);
    const int peer = 1 - rank_;
    MPI_Recv_init(rank_ == 0 ? t.back : t.block, 1, block_, peer, 0, comm_, &requests_[0]);
    MPI_Send_init(t.block, 1, block_, peer, 0, comm_, &requests_[1]);
  }
  DatatypeTransfer(const DatatypeTransfer&) = delete;
  DatatypeTransfer& operator=(const DatatypeTransfer&) = delete;
  ~DatatypeTransfer() override {
    if (rank_ <= 1) {
      MPI_Request_free(&requests_[0]);
      MPI_Request_free(&requests_[1]);
      MPI_Type_free(&block_);
    }
    MPI_Comm_free(&comm_);
  }
  void start() override {
    if (rank_ == 0) {
      MPI_Startall(2, requests_);
      MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
    } else if (rank_ == 1) {
      for (auto& request : requests_) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
    }
  }

 private:
  int rank_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype block_ = MPI_DATATYPE_NULL;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

const RegisterPeer kPeer({.name = "mpi_datatype",
                          .halo = {},
                          .transfer = [](const TransferCase& t) { return std::make_unique<DatatypeTransfer>(t); },
                          .broadcast = {},
                          .splits = false,
                          .solo = false});

}  // namespace
}  // namespace bench
