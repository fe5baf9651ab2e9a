// A neighbourhood collective on a graph of the directions: one call, one datatype for each neighbour over all fields.
#include <mpi.h>

#include "peer.hpp"
#include "peers/neighbours.hpp"

namespace bench {
namespace {

class NeighbourHalo : public Runner {
 public:
  explicit NeighbourHalo(const HaloCase& problem) {
    // The same rank may be a neighbour in several directions: its edges are then matched in the order of the lists on
    // both sides. Both lists are in the order of the direction in which a message travels.
    const auto neighbours = neighbours_of(problem);
    std::vector<Neighbour> by_arrival(neighbours.rbegin(), neighbours.rend());
    std::vector<int> sources, destinations;
    for (const auto& n : by_arrival) sources.push_back(n.rank);
    for (const auto& n : neighbours) destinations.push_back(n.rank);
    const auto degree = static_cast<int>(neighbours.size());
    MPI_Dist_graph_create_adjacent(problem.context.comm(), degree, sources.data(), MPI_UNWEIGHTED, degree,
                                   destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm_);
    for (const auto& n : neighbours) send_types_.push_back(over_fields(problem, n.send));
    for (const auto& n : by_arrival) recv_types_.push_back(over_fields(problem, n.recv));
    counts_.assign(neighbours.size(), 1);
    displacements_.assign(neighbours.size(), 0);
  }
  NeighbourHalo(const NeighbourHalo&) = delete;
  NeighbourHalo& operator=(const NeighbourHalo&) = delete;
  ~NeighbourHalo() override {
    for (auto& type : send_types_) MPI_Type_free(&type);
    for (auto& type : recv_types_) MPI_Type_free(&type);
    MPI_Comm_free(&comm_);
  }
  void start() override {
    MPI_Neighbor_alltoallw(MPI_BOTTOM, counts_.data(), displacements_.data(), send_types_.data(), MPI_BOTTOM,
                           counts_.data(), displacements_.data(), recv_types_.data(), comm_);
  }

 private:
  static MPI_Datatype over_fields(const HaloCase& problem, const LocalBox& box) {
    std::vector<MPI_Datatype> parts;
    std::vector<MPI_Aint> addresses;
    for (const auto& field : problem.fields) {
      parts.push_back(subarray_of(field, box));
      MPI_Get_address(field.data(), &addresses.emplace_back());
    }
    const std::vector<int> ones(parts.size(), 1);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), addresses.data(), parts.data(), &type);
    MPI_Type_commit(&type);
    for (auto& part : parts) MPI_Type_free(&part);
    return type;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MPI_Datatype> send_types_, recv_types_;
  std::vector<int> counts_;
  std::vector<MPI_Aint> displacements_;
};

const RegisterPeer kPeer({.name = "mpi_neighbor",
                          .halo = [](const HaloCase& problem) { return std::make_unique<NeighbourHalo>(problem); },
                          .transfer = {},
                          .broadcast = {},
                          .splits = false,
                          .solo = false});

}  // namespace
}  // namespace bench
