// MPI's ways to exchange the ghost cells of a mesh: packed messages by persistent requests, indexed datatypes by
// persistent requests, and packed blocks by MPI_Neighbor_alltoallv.
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "peer.hpp"

namespace bench {
namespace {

// Packed cells of all entries, one after the other.
class Staged : public Runner {
 public:
  explicit Staged(const MeshCase& mesh) : mesh_(mesh) {
    std::size_t sent = 0, received = 0;
    for (const auto& entry : mesh.entries) {
      sent += entry.send.size();
      received += entry.receive.size();
    }
    sent_.resize(sent * static_cast<std::size_t>(mesh.levels));
    received_.resize(received * static_cast<std::size_t>(mesh.levels));
  }

 protected:
  void pack() {
    double* to = sent_.data();
    for (const auto& entry : mesh_.entries) to = pack(entry, to);
  }
  double* pack(const MeshCase::Entry& entry, double* to) const {
    if (mesh_.levels == 1) {
      for (const std::int64_t cell : entry.send) *to++ = mesh_.field[cell];
      return to;
    }
    for (const std::int64_t cell : entry.send) to = std::copy_n(mesh_.field + cell * mesh_.levels, mesh_.levels, to);
    return to;
  }
  const double* unpack(const MeshCase::Entry& entry, const double* from) const {
    if (mesh_.levels == 1) {
      for (const std::int64_t cell : entry.receive) mesh_.field[cell] = *from++;
      return from;
    }
    for (const std::int64_t cell : entry.receive) {
      std::copy_n(from, mesh_.levels, mesh_.field + cell * mesh_.levels);
      from += mesh_.levels;
    }
    return from;
  }
  int count(const std::vector<std::int64_t>& cells) const { return static_cast<int>(std::ssize(cells) * mesh_.levels); }

  MeshCase mesh_;
  std::vector<double> sent_, received_;
};

class Packed : public Staged {
 public:
  explicit Packed(const MeshCase& mesh) : Staged(mesh) {
    double* from = sent_.data();
    double* to = received_.data();
    for (const auto& entry : mesh_.entries) {
      MPI_Recv_init(to, count(entry.receive), MPI_DOUBLE, entry.peer, 0, mesh_.context.comm(),
                    &receives_.emplace_back());
      MPI_Send_init(from, count(entry.send), MPI_DOUBLE, entry.peer, 0, mesh_.context.comm(), &sends_.emplace_back());
      from += count(entry.send);
      to += count(entry.receive);
    }
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() override {
    for (auto* requests : {&receives_, &sends_})
      for (MPI_Request& request : *requests) MPI_Request_free(&request);
  }
  void start() override {
    MPI_Startall(static_cast<int>(receives_.size()), receives_.data());
    double* to = sent_.data();
    for (std::size_t e = 0; e < sends_.size(); ++e) {
      to = pack(mesh_.entries[e], to);
      MPI_Start(&sends_[e]);
    }
  }
  void wait() override {
    MPI_Waitall(static_cast<int>(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE);
    const double* from = received_.data();
    for (const auto& entry : mesh_.entries) from = unpack(entry, from);
    MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  std::vector<MPI_Request> receives_, sends_;
};

class Indexed : public Runner {
 public:
  explicit Indexed(const MeshCase& mesh) {
    const auto type = [&](const std::vector<std::int64_t>& cells) {
      std::vector<int> places;
      for (const std::int64_t cell : cells) places.push_back(static_cast<int>(cell * mesh.levels));
      MPI_Type_create_indexed_block(static_cast<int>(places.size()), static_cast<int>(mesh.levels), places.data(),
                                    MPI_DOUBLE, &types_.emplace_back());
      MPI_Type_commit(&types_.back());
      return types_.back();
    };
    for (const auto& entry : mesh.entries) {
      MPI_Recv_init(mesh.field, 1, type(entry.receive), entry.peer, 0, mesh.context.comm(), &requests_.emplace_back());
      MPI_Send_init(mesh.field, 1, type(entry.send), entry.peer, 0, mesh.context.comm(), &requests_.emplace_back());
    }
  }
  Indexed(const Indexed&) = delete;
  Indexed& operator=(const Indexed&) = delete;
  ~Indexed() override {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
  }
  void start() override { MPI_Startall(static_cast<int>(requests_.size()), requests_.data()); }
  void wait() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  std::vector<MPI_Datatype> types_;
  std::vector<MPI_Request> requests_;
};

class NeighborAlltoallv : public Staged {
 public:
  explicit NeighborAlltoallv(const MeshCase& mesh) : Staged(mesh) {
    std::vector<int> peers;
    int sent = 0, received = 0;
    for (const auto& entry : mesh.entries) {
      peers.push_back(entry.peer);
      send_counts_.push_back(count(entry.send));
      receive_counts_.push_back(count(entry.receive));
      send_at_.push_back(sent);
      receive_at_.push_back(received);
      sent += send_counts_.back();
      received += receive_counts_.back();
    }
    const int n = static_cast<int>(peers.size());
    MPI_Dist_graph_create_adjacent(mesh.context.comm(), n, peers.data(), MPI_UNWEIGHTED, n, peers.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
  }
  NeighborAlltoallv(const NeighborAlltoallv&) = delete;
  NeighborAlltoallv& operator=(const NeighborAlltoallv&) = delete;
  ~NeighborAlltoallv() override { MPI_Comm_free(&graph_); }
  void start() override {
    Staged::pack();
    MPI_Neighbor_alltoallv(sent_.data(), send_counts_.data(), send_at_.data(), MPI_DOUBLE, received_.data(),
                           receive_counts_.data(), receive_at_.data(), MPI_DOUBLE, graph_);
    const double* from = received_.data();
    for (const auto& entry : mesh_.entries) from = unpack(entry, from);
  }

 private:
  MPI_Comm graph_ = MPI_COMM_NULL;
  std::vector<int> send_counts_, receive_counts_, send_at_, receive_at_;
};

template <class Form>
Peer peer_of(const char* name) {
  Peer peer;
  peer.name = name;
  peer.mesh = [](const MeshCase& mesh) { return std::make_unique<Form>(mesh); };
  return peer;
}

const RegisterPeer packed{peer_of<Packed>("mpi packed persistent")};
const RegisterPeer indexed{peer_of<Indexed>("mpi indexed persistent")};
const RegisterPeer neighbor{peer_of<NeighborAlltoallv>("mpi neighbor_alltoallv")};

}  // namespace
}  // namespace bench
