// Persistent requests on sub-array datatypes, a message for each field and neighbour: what MPI offers for this job.
#include <mpi.h>

#include "peer.hpp"
#include "peers/neighbours.hpp"

namespace bench {
namespace {

class PersistentHalo : public Runner {
 public:
  explicit PersistentHalo(const HaloCase& problem) {
    MPI_Comm_dup(problem.context.comm(), &comm_);
    const auto neighbours = neighbours_of(problem);
    for (std::size_t f = 0; f < problem.fields.size(); ++f) {
      const auto& field = problem.fields[f];
      const int tag = static_cast<int>(f) * 27;
      // All receives first: no message finds its place not yet posted because of the order of the requests.
      for (const auto& n : neighbours) {
        types_.push_back(subarray_of(field, n.recv));
        MPI_Recv_init(field.data(), 1, types_.back(), n.rank, tag + n.recv_tag, comm_, &receives_.emplace_back());
      }
      for (const auto& n : neighbours) {
        types_.push_back(subarray_of(field, n.send));
        MPI_Send_init(field.data(), 1, types_.back(), n.rank, tag + n.send_tag, comm_, &sends_.emplace_back());
      }
    }
    requests_ = receives_;
    requests_.insert(requests_.end(), sends_.begin(), sends_.end());
  }
  PersistentHalo(const PersistentHalo&) = delete;
  PersistentHalo& operator=(const PersistentHalo&) = delete;
  ~PersistentHalo() override {
    for (auto& request : requests_) MPI_Request_free(&request);
    for (auto& type : types_) MPI_Type_free(&type);
    MPI_Comm_free(&comm_);
  }
  void start() override {
    // Open MPI refuses an empty list.
    if (!requests_.empty()) MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
  }
  void wait() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MPI_Datatype> types_;
  std::vector<MPI_Request> receives_, sends_, requests_;
};

const RegisterPeer kPeer({.name = "mpi_persistent",
                          .halo = [](const HaloCase& problem) { return std::make_unique<PersistentHalo>(problem); },
                          .transfer = {},
                          .broadcast = {},
                          .splits = true,
                          .solo = false});

}  // namespace
}  // namespace bench
