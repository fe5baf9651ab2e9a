// What the driver asks of a peer (a way to do the communication of a case), and the register of all peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasuki/context.hpp"
#include "tasuki/field.hpp"
#include "tasuki/planning.hpp"

namespace bench {

/// One peer's communication for one case, prepared as well as that peer can. `start` and `wait` are called by all ranks
/// in turn; a peer that cannot be split does everything in `start`.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual void start() = 0;
  virtual void wait() {}
  /// Returns when all that was started has ended on this rank: for peers whose `start` and `wait` only put work into a
  /// GPU's stream.
  virtual void finish() {}
  /// Exchanges that one start makes.
  virtual int exchanges() const { return 1; }
  /// Seconds that one iteration is predicted to take, where the peer predicts: back to back, or with all ranks starting
  /// together. Collective.
  virtual std::optional<double> predicted(bool together) const {
    static_cast<void>(together);
    return std::nullopt;
  }
  /// Bytes that the prepared operation occupies, where the peer can tell.
  virtual std::optional<std::int64_t> memory() const { return std::nullopt; }
};
using RunnerPtr = std::unique_ptr<Runner>;

/// The halo exchange of fields that share one grid. Corners included wherever two widths are positive.
struct HaloCase {
  tasuki::Context context;
  tasuki::Grid grid;
  std::vector<tasuki::Field<double>> fields;  ///< allocated with the shadow that is to be exchanged
  tasuki::Width width;                        ///< what is exchanged: the shadow, or nothing
};

/// A block of `rows` x `columns` doubles of a row-major matrix whose rows are `stride` doubles apart goes from rank 0
/// to the same place in rank 1's matrix, and from there to `back` in rank 0's. Ranks above 1 have no part in it.
struct TransferCase {
  tasuki::Context context;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  double* block = nullptr;    ///< ranks 0 and 1: first element of the block
  double* back = nullptr;     ///< rank 0: where the block arrives that comes back
  double* scratch = nullptr;  ///< rank 0: the block in a second matrix of the same shape, for bounds
};

/// `bytes` bytes at `data` of rank 0 go to `data` of all ranks.
struct BroadcastCase {
  tasuki::Context context;
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

/// A collective on numbers, sums where it combines, rank 0 the root; a broadcast is one of `in`.
struct CollectiveCase {
  tasuki::Context context;
  tasuki::CollectiveKind kind{};
  std::int64_t count = 0;  ///< numbers: of the vector, or of every block
  double* in = nullptr;    ///< room for all that any rank may have
  double* out = nullptr;
  bool overlap = false;  ///< of engines, both are of interest
  /// The allgather or all-to-all along the ring of all ranks: blocks go to the next and the last one, in this order,
  /// and come from the last and the next one.
  bool ring = false;
  bool shared = true;  ///< `in` and `out` lie where other ranks can reach them
  int next() const { return (context.rank() + 1) % context.size(); }
  int last() const { return (context.rank() + context.size() - 1) % context.size(); }
};

/// A matrix of doubles whose rows the ranks share out evenly, row-major, at `in`, becomes one whose columns they share
/// out, at `out`: `size` rows of `size / ranks` columns. `turned`: as the transpose, `size / ranks` rows of `size`.
struct TransposeCase {
  tasuki::Context context;
  std::int64_t size = 0;
  bool turned = false;
  double* in = nullptr;
  double* out = nullptr;
  std::int64_t share() const { return size / context.size(); }
  /// Where number (row of this rank, column) lies in `in`.
  std::int64_t at_in(std::int64_t row, std::int64_t column) const { return row * size + column; }
  /// Where number (row of the matrix, column of this rank's) lies in `out`.
  std::int64_t at_out(std::int64_t row, std::int64_t column) const {
    return turned ? column * size + row : row * share() + column;
  }
};

/// Ghost cells of an unstructured mesh, filled from the ranks that own them: `levels` doubles a cell, cell by cell.
struct MeshCase {
  struct Entry {
    int peer = 0;
    std::vector<std::int64_t> send = {}, receive = {};  ///< cells
  };
  tasuki::Context context;
  std::int64_t cells = 0;  ///< of this rank, ghosts too
  std::int64_t levels = 1;
  std::vector<Entry> entries;
  double* field = nullptr;
};

struct GpuCase;            // gpu/problem.hpp
struct GpuCollectiveCase;  // gpu/collectives.hpp
struct GpuCollectiveRun;

/// A competitor. An empty function means that it has no answer to that kind of case.
struct Peer {
  std::string name;
  std::function<RunnerPtr(const HaloCase&)> halo;
  std::function<RunnerPtr(const TransferCase&)> transfer;
  std::function<RunnerPtr(const BroadcastCase&)> broadcast;
  bool splits = false;  ///< `start` returns without waiting for others, so that its own cost can be measured
  bool solo = false;    ///< a bound: only rank 0 works, on its own memory, and nothing arrives at other ranks
  std::function<RunnerPtr(const GpuCase&)> gpu = {};
  std::function<RunnerPtr(const CollectiveCase&)> collective = {};
  std::function<GpuCollectiveRun(const GpuCollectiveCase&)> gpu_collective = {};
  std::function<RunnerPtr(const TransposeCase&)> transpose = {};
  std::function<RunnerPtr(const MeshCase&)> mesh = {};
  bool silent = false;  ///< a bound: moves the bytes, but ranks do not tell each other when they may and when they have
};

/// Tasuki first, then by name.
const std::vector<Peer>& peers();

/// A file of bench/peers/ has one of these at namespace scope.
struct RegisterPeer {
  explicit RegisterPeer(Peer peer);
};

/// Peers `tasuki PATH` for halos and `tasuki PATH ALGORITHM` for collectives, on hosts: what the planner chooses among,
/// forced. A peer has no answer to what its path or algorithm cannot carry. Call it before `peers`.
void add_forced();

/// The peer that the others are compared with.
inline constexpr const char* kReference = "tasuki";
/// Ends the name of a peer that is replayed as a CUDA graph; such peers are compared with each other.
inline constexpr const char* kReplayed = " graph";

}  // namespace bench
