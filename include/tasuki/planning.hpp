// Planning off line: the plans of all ranks of a machine that need not exist, by the same functions that live
// operations call. Neither MPI nor a GPU is needed, and no memory of fields is allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tasuki/box.hpp"
#include "tasuki/cells.hpp"
#include "tasuki/dtype.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/machine.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/predict.hpp"

namespace tasuki {

/// A field, without memory. As `FieldOptions` and `HaloField` of a live one.
struct FieldShape {
  std::string name = "field";
  std::int64_t element_bytes = 8;
  DType dtype = DType::f64;
  Width shadow = 1;
  Width width = 1;  ///< at most the shadow
  int copies = 1;   ///< instances in memory, 1 or 2
  std::int64_t pad = 0;
  Memory memory = Memory::host;
  bool shared = true;  ///< memory that peers can map: Tasuki's own. The user's own host memory is not.
};

/// A halo exchange. As `Halo`.
struct HaloShape {
  std::vector<std::int64_t> extents;  ///< of the grid, in cells
  GridOptions grid;
  std::vector<FieldShape> fields;
  bool corners = true;
  bool reverse = false;
  bool alternating = false;
  std::vector<std::vector<std::int64_t>> cuts = {};
  std::string edges = {};
  std::string path = "auto";
};

/// A transfer. As `Transfer`.
struct TransferShape {
  int from = 0;
  int to = 0;
  Layout src;
  Layout dst;
  Memory memory = Memory::host;
  bool shared = true;  ///< both sides lie in memory that peers can map
  std::string path = "auto";
};

/// The collectives that algorithms lay out (docs/collectives.md).
enum class CollectiveKind : std::uint8_t {
  broadcast,
  allreduce,
  allgather,
  reduce,
  reduce_scatter,
  alltoall,
  gather,
  scatter,
  barrier,
  scan,    ///< of the ranks up to the own one
  exscan,  ///< of the ranks below the own one
};
std::string_view to_string(CollectiveKind kind);
CollectiveKind collective_from_string(std::string_view name);  ///< Throws `Error` for an unknown name.
const std::vector<CollectiveKind>& all_collectives();          ///< In the order above.
bool rooted(CollectiveKind kind);                              ///< One rank gives what all get, or gets what all give.
bool reduces(CollectiveKind kind);                             ///< It combines numbers.
bool has_blocks(CollectiveKind kind);  ///< There is a block for each rank, and `counts` may be given.

/// A collective. As `Broadcast` and the classes of collectives.hpp, which say what is moved.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::allreduce;
  int root = 0;                      ///< broadcast, reduce, gather, scatter
  std::int64_t count = 0;            ///< elements: of the vector, or of every block
  std::vector<std::int64_t> counts;  ///< elements of each block, if they differ; alltoall: [from * ranks + to]
  DType type = DType::u8;
  ReduceOp op = ReduceOp::sum;
  std::string own = {};     ///< what the operator `own` is called
  std::int64_t record = 1;  ///< `own`: numbers that are combined together; an element is so many of them
  bool ordered = false;     ///< reductions combine in rank order
  bool in_place = false;    ///< with a root: the root's is
  /// Memory that is not contiguous: which bytes of it each rank's `in` and `out` are, all of the rank's blocks in the
  /// order of the blocks. Empty: contiguous, on all ranks. The one buffer of a broadcast is `in`, that of a collective
  /// in place `out`. A layout names as many bytes as the counts say; that of a buffer which is not looked at names
  /// none.
  std::vector<Layout> in_layouts, out_layouts;
  Memory memory = Memory::host;
  bool shared = false;  ///< the data lie in memory that peers can map
  std::string algorithm = "auto";
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;  ///< bytes
  std::string path = "auto";
  /// Of so many bytes.
  static CollectiveShape broadcast(int root, std::int64_t bytes);
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

/// One rank's blocks in a neighbour collective, in the order of its neighbours. Layouts are relative to the rank's `in`
/// and `out`.
struct NeighbourBlocks {
  std::vector<int> to, from;           ///< ranks; -1: nobody
  std::vector<Layout> sent, received;  ///< one for each entry of `to`, of `from`
  /// The neighbours are those of a grid: block 2 d, for the lower one in dimension d, arrives as block 2 d + 1 of that
  /// rank, and the other way round.
  bool of_grid = false;
};

/// A neighbour collective. As `NeighbourAlltoall`, or `NeighbourAllgather`, whose blocks to all neighbours are the same
/// bytes.
struct NeighbourShape {
  bool allgather = false;
  std::vector<NeighbourBlocks> blocks;  ///< of each rank
  Memory memory = Memory::host;
  bool shared = false;  ///< the data lie in memory that peers can map
  std::string path = "auto";

  /// With the ranks beside each rank in a grid of ranks, as `Neighbours(grid)` names them; blocks of `bytes` bytes, one
  /// after the other. `split`: ranks in each dimension; 0: chosen. `periodic`: of each dimension, or empty: none is.
  static NeighbourShape on_grid(const Machine& machine, const std::vector<int>& split,
                                const std::vector<bool>& periodic, std::int64_t bytes, bool allgather = false);
  /// With the ranks that each rank sends to and hears from; blocks of `bytes` bytes, one after the other.
  static NeighbourShape among(const std::vector<std::pair<std::vector<int>, std::vector<int>>>& neighbours,
                              std::int64_t bytes, bool allgather = false);
};

/// An exchange of cells on any mesh or graph. As `Exchange`.
struct ExchangeShape {
  std::vector<Cells> fields;  ///< alike on all ranks; a `count` of -1: it is not known, so that no cell is outside
  std::vector<std::vector<ExchangeEntry>> entries;  ///< of each rank
  bool reverse = false;
  ReduceOp op = ReduceOp::sum;
  Memory memory = Memory::host;
  bool shared = false;  ///< the fields lie in memory that peers can map
  std::string path = "auto";
};

/// An operation by its name in the schema of languages and in plans, with its arguments by the names that C++ has for
/// them: for operations that have no struct above (docs/extending.md).
struct NamedShape {
  std::string operation;
  std::map<std::string, std::int64_t> arguments;  ///< counts, ranks and other integers; a type as the number of `DType`
  Memory memory = Memory::host;
  bool shared = false;  ///< the data lie in memory that peers can map
  std::string path = "auto";
};

/// What a rank sends to another one: a piece, or what a step of an algorithm moves.
struct Message {
  std::string label;  ///< as in `explain`
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  std::string path;
};

/// Plans of all ranks of a machine, each made when it is asked for. A handle: cheap to copy.
class Planned {
 public:
  int ranks() const;
  /// Made from the rank's own choices and its peers'. Throws `Error` for a rank that does not exist.
  Plan plan(int rank) const;
  std::vector<Plan> plans() const;  ///< of all ranks, in their order
  /// The table of `Operation::explain` for a rank, and below it what the epoch is predicted to take on all ranks.
  std::string explain(int rank) const;
  /// What an epoch takes. Makes the plans of all ranks.
  Prediction predict() const;
  /// Which engine pays beside a computation of so many seconds (predict.hpp). On GPUs the plans are made for the copy
  /// engines as well, if these can carry the operation.
  Advice advise(double computation) const;
  /// What goes from rank to rank, by sender. Makes no plans.
  std::vector<Message> messages() const;
  /// Calls `see(pass, plan)` with a rank's plan as it was emitted and after every pass.
  void passes(int rank, const std::function<void(const std::string& pass, const Plan& plan)>& see) const;

  struct Impl;
  explicit Planned(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Chooses paths for all ranks. Throws `Error` for shapes that cannot be, as the live operations do.
Planned plan(const Machine& machine, const HaloShape& halo);
Planned plan(const Machine& machine, const TransferShape& transfer);
Planned plan(const Machine& machine, const CollectiveShape& collective);
Planned plan(const Machine& machine, const NeighbourShape& neighbours);
Planned plan(const Machine& machine, const ExchangeShape& exchange);
Planned plan(const Machine& machine, const NamedShape& named);

/// Planning, predicting and verifying for many ranks takes seconds. All call `look` now and then, on the calling
/// thread; it may throw `Interruption`, which ends them. An interpreter checks for signals there. For the whole
/// process, to be called while nobody plans; null: nothing is called.
void set_planning_look(void (*look)());

/// Verifies plans of more ranks than `verify` can follow, by neighbourhoods. Ranks form a class if their plans are
/// equal except for the numbers of their peers. One rank of each class is verified as by `verify`, together with its
/// peers, without those lanes of the peers that deal with other ranks. Two kinds of flaws are not seen: a flaw that
/// involves ranks farther apart, and a rank of a class whose peers differ from those of the verified one. The report
/// says how many classes there are.
///
/// Throws `Error` for plans of which a neighbourhood does not show whether they are sound: a rank passes on or combines
/// what it received (most collectives), a lane deals with several ranks at once (trees), or a rank and its peers are
/// more than `verify` follows. Use `verify`, for a smaller case if need be.
struct NeighbourhoodReport : VerifyReport {
  int classes = 0;
  std::string text() const;
};
NeighbourhoodReport verify_neighbourhoods(std::span<const Plan> plans);

}  // namespace tasuki
