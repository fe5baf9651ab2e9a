// MPI's ways to turn rows into columns: MPI_Alltoallw on derived datatypes, blocking and persistent, and packing by
// hand around MPI_Alltoall.
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "peer.hpp"
#include "peers/persistent.hpp"

namespace bench {
namespace {

// The arguments of MPI_Alltoallw.
struct Blocks {
  explicit Blocks(const TransposeCase& t) {
    const auto ranks = static_cast<std::size_t>(t.context.size());
    const int share = static_cast<int>(t.share());
    const int size = static_cast<int>(t.size);
    ones.assign(ranks, 1);
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto begin = static_cast<std::int64_t>(r) * share;
      send_at.push_back(static_cast<int>(8 * t.at_in(0, begin)));
      receive_at.push_back(static_cast<int>(8 * t.at_out(begin, 0)));
    }
    MPI_Datatype sent, received;
    MPI_Type_vector(share, share, size, MPI_DOUBLE, &sent);
    if (t.turned) {
      // Row by row of what comes: each row is a column here.
      MPI_Datatype column;
      MPI_Type_vector(share, 1, size, MPI_DOUBLE, &column);
      MPI_Type_create_hvector(share, 1, 8, column, &received);
      MPI_Type_free(&column);
    } else {
      MPI_Type_contiguous(share * share, MPI_DOUBLE, &received);
    }
    MPI_Type_commit(&sent);
    MPI_Type_commit(&received);
    send_types.assign(ranks, sent);
    receive_types.assign(ranks, received);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    MPI_Type_free(&send_types[0]);
    MPI_Type_free(&receive_types[0]);
  }
  std::vector<int> ones, send_at, receive_at;
  std::vector<MPI_Datatype> send_types, receive_types;
};

class Alltoallw : public Runner {
 public:
  explicit Alltoallw(const TransposeCase& t) : t_(t), b_(t) {}
  void start() override {
    MPI_Alltoallw(t_.in, b_.ones.data(), b_.send_at.data(), b_.send_types.data(), t_.out, b_.ones.data(),
                  b_.receive_at.data(), b_.receive_types.data(), t_.context.comm());
  }

 private:
  TransposeCase t_;
  Blocks b_;
};

#ifdef HAS_PERSISTENT_COLLECTIVES
class Persistent : public PersistentCollective {
 public:
  explicit Persistent(const TransposeCase& t) : b_(t) {
    MPI_Alltoallw_init(t.in, b_.ones.data(), b_.send_at.data(), b_.send_types.data(), t.out, b_.ones.data(),
                       b_.receive_at.data(), b_.receive_types.data(), t.context.comm(), MPI_INFO_NULL, &request_);
  }

 private:
  Blocks b_;
};
#endif

// Packs the blocks row by row, or column by column for the transpose, so that what arrives needs one pass more.
class Packed : public Runner {
 public:
  explicit Packed(const TransposeCase& t)
      : t_(t), sent_(static_cast<std::size_t>(t.share() * t.size)), received_(sent_.size()) {}
  void start() override {
    const std::int64_t share = t_.share();
    double* to = sent_.data();
    for (int r = 0; r < t_.context.size(); ++r)
      for (std::int64_t row = 0; row < share; ++row, to += share)
        std::copy_n(t_.in + t_.at_in(row, r * share), share, to);
    const auto count = static_cast<int>(share * share);
    MPI_Alltoall(sent_.data(), count, MPI_DOUBLE, received_.data(), count, MPI_DOUBLE, t_.context.comm());
    const double* from = received_.data();
    if (!t_.turned) {
      std::copy_n(from, t_.size * share, t_.out);
      return;
    }
    for (std::int64_t row = 0; row < t_.size; ++row)
      for (std::int64_t column = 0; column < share; ++column) t_.out[t_.at_out(row, column)] = *from++;
  }

 private:
  TransposeCase t_;
  std::vector<double> sent_, received_;
};

template <class Form>
Peer peer_of(const char* name) {
  Peer peer;
  peer.name = name;
  peer.transpose = [](const TransposeCase& t) { return std::make_unique<Form>(t); };
  return peer;
}

const RegisterPeer blocking{peer_of<Alltoallw>("mpi alltoallw")};
const RegisterPeer packed{peer_of<Packed>("mpi alltoall packed")};
#ifdef HAS_PERSISTENT_COLLECTIVES
const RegisterPeer persistent{peer_of<Persistent>("mpi alltoallw persistent")};
#endif

}  // namespace
}  // namespace bench
