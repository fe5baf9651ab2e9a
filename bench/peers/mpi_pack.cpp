// Hand-written packing into one message for each neighbouring rank, as many codes do it; a rank's own halo is copied.
#include <mpi.h>

#include <algorithm>
#include <map>

#include "peer.hpp"
#include "peers/neighbours.hpp"

namespace bench {
namespace {

class PackedHalo : public Runner {
 public:
  explicit PackedHalo(const HaloCase& problem) : fields_(problem.fields) {
    MPI_Comm_dup(problem.context.comm(), &comm_);
    std::map<int, Message> by_rank;
    const auto neighbours = neighbours_of(problem);
    for (const auto& n : neighbours) {
      by_rank[n.rank].sends.push_back(n.send);
    }
    // Both sides list the boxes in the order of the direction in which they travel.
    for (auto n = neighbours.rbegin(); n != neighbours.rend(); ++n) by_rank[n->rank].receives.push_back(n->recv);
    for (auto& [rank, message] : by_rank) {
      message.rank = rank;
      message.to_send.resize(cells(message.sends) * fields_.size());
      message.received.resize(cells(message.receives) * fields_.size());
      (rank == problem.context.rank() ? own_ : messages_).push_back(std::move(message));
    }
    requests_.resize(2 * messages_.size());
  }
  PackedHalo(const PackedHalo&) = delete;
  PackedHalo& operator=(const PackedHalo&) = delete;
  ~PackedHalo() override { MPI_Comm_free(&comm_); }

  void start() override {
    auto request = requests_.begin();
    for (auto& m : messages_) {
      MPI_Irecv(m.received.data(), static_cast<int>(m.received.size()), MPI_DOUBLE, m.rank, 0, comm_, &*request++);
    }
    for (auto& m : messages_) {
      pack(m.sends, m.to_send.data());
      MPI_Isend(m.to_send.data(), static_cast<int>(m.to_send.size()), MPI_DOUBLE, m.rank, 0, comm_, &*request++);
    }
    for (const auto& m : own_) {
      for (const auto& field : fields_) copy_inside(field, m);
    }
  }
  void wait() override {
    for (std::size_t arrived = 0; arrived < messages_.size(); ++arrived) {
      int which = 0;
      MPI_Waitany(static_cast<int>(messages_.size()), requests_.data(), &which, MPI_STATUS_IGNORE);
      unpack(messages_[which].receives, messages_[which].received.data());
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct Message {
    int rank = 0;
    std::vector<LocalBox> sends, receives;
    std::vector<double> to_send, received;
  };

  static std::size_t cells(const std::vector<LocalBox>& boxes) {
    std::size_t sum = 0;
    for (const auto& box : boxes) sum += static_cast<std::size_t>(box.extent[0]) * box.extent[1] * box.extent[2];
    return sum;
  }

  // Calls `f(first cell of the row, its length)` for the box's rows.
  template <class F>
  static void for_rows(const tasuki::Field<double>& field, const LocalBox& box, F&& f) {
    double* const data = field.data();
    const auto si = field.strides()[0];
    const auto sj = field.strides()[1];
    for (int i = 0; i < box.extent[0]; ++i) {
      for (int j = 0; j < box.extent[1]; ++j) {
        f(data + (box.lo[0] + i) * si + (box.lo[1] + j) * sj + box.lo[2], box.extent[2]);
      }
    }
  }

  // Plain loops: for rows of one or two cells a call of memcpy would cost more than the row.
  void pack(const std::vector<LocalBox>& boxes, double* to) const {
    for (const auto& field : fields_) {
      for (const auto& box : boxes) {
        for_rows(field, box, [&](const double* row, int n) {
          for (int k = 0; k < n; ++k) *to++ = row[k];
        });
      }
    }
  }
  void unpack(const std::vector<LocalBox>& boxes, const double* from) const {
    for (const auto& field : fields_) {
      for (const auto& box : boxes) {
        for_rows(field, box, [&](double* row, int n) {
          for (int k = 0; k < n; ++k) row[k] = *from++;
        });
      }
    }
  }
  static void copy_inside(const tasuki::Field<double>& field, const Message& own) {
    for (std::size_t b = 0; b < own.sends.size(); ++b) {
      const LocalBox& from = own.sends[b];
      const LocalBox& to = own.receives[b];
      const auto shift = (from.lo[0] - to.lo[0]) * field.strides()[0] + (from.lo[1] - to.lo[1]) * field.strides()[1] +
                         from.lo[2] - to.lo[2];
      for_rows(field, to, [&](double* row, int n) {
        for (int k = 0; k < n; ++k) row[k] = row[k + shift];
      });
    }
  }

  std::vector<tasuki::Field<double>> fields_;
  std::vector<Message> messages_, own_;
  std::vector<MPI_Request> requests_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Rank 0 sends, rank 1 sends back; rank 0 has posted its receive beforehand.
class PackedTransfer : public Runner {
 public:
  explicit PackedTransfer(const TransferCase& t) : t_(t), to_send_(t.rows * t.columns), received_(t.rows * t.columns) {
    MPI_Comm_dup(t.context.comm(), &comm_);
  }
  PackedTransfer(const PackedTransfer&) = delete;
  PackedTransfer& operator=(const PackedTransfer&) = delete;
  ~PackedTransfer() override { MPI_Comm_free(&comm_); }

  void start() override {
    if (t_.context.rank() > 1) return;
    const auto n = static_cast<int>(received_.size());
    const int peer = 1 - t_.context.rank();
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Irecv(received_.data(), n, MPI_DOUBLE, peer, 0, comm_, &receive);
    if (peer == 0) arrive(receive, t_.block);
    const double* row = t_.block;
    double* to = to_send_.data();
    for (std::int64_t i = 0; i < t_.rows; ++i, row += t_.stride) {
      for (std::int64_t k = 0; k < t_.columns; ++k) *to++ = row[k];
    }
    MPI_Send(to_send_.data(), n, MPI_DOUBLE, peer, 0, comm_);
    if (peer == 1) arrive(receive, t_.back);
  }

 private:
  void arrive(MPI_Request& receive, double* row) const {
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    const double* from = received_.data();
    for (std::int64_t i = 0; i < t_.rows; ++i, row += t_.stride) {
      for (std::int64_t k = 0; k < t_.columns; ++k) row[k] = *from++;
    }
  }

  TransferCase t_;
  std::vector<double> to_send_, received_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

const RegisterPeer kPeer({.name = "mpi_pack",
                          .halo = [](const HaloCase& problem) { return std::make_unique<PackedHalo>(problem); },
                          .transfer = [](const TransferCase& t) { return std::make_unique<PackedTransfer>(t); },
                          .broadcast = {},
                          .splits = false,
                          .solo = false});

}  // namespace
}  // namespace bench
