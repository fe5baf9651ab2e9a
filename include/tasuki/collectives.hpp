// Collectives: prepared once, run many times. What one moves and when it may run is said here; how it is laid out, and
// how that is chosen, in docs/collectives.md. `Broadcast` has a header of its own.
//
// Common to all: made collectively, by all ranks of the context with the same arguments; a difference, or an argument
// that is wrong on one rank, throws `Error` on every rank and names it. Counts are elements of `type`, may be 0 and
// need 64 bits. `in` is only read, `out` only written; they may not overlap. Nothing of them is touched before the
// first start. They are host memory, any, or memory of GPUs, any: one kind in a call, on all ranks. With memory of GPUs
// a collective can be started in a stream or captured in a graph (operation.hpp), and every rank needs a GPU. Where
// nobody's counts leave any memory to look at, pointers that are not null tell which is meant. Where several blocks lie
// in one buffer they lie one after the other, in rank order. Starts may come in any order on different ranks, several
// may be active.
//
// Memory need not be contiguous: each also takes layouts, which say which bytes of `in` and `out` its blocks are. A
// layout may differ from rank to rank, and from that of the block that it meets, but both name equally many bytes. In
// reductions these are whole elements of `type`. Memory that is written has no byte named twice. A side that is not
// looked at may have any layout; where a rank works in place, those of `out` hold (reduce-scatter: those of `in`, and
// the result is where the first of these bytes are). `blocks_of` makes layouts from what MPI's collectives take: a
// datatype, counts and displacements.
//
// Reductions combine in an order that is fixed by algorithm, parameters, ranks and counts: they give the same bits at
// every repetition, on every path and engine, and an allreduce gives all ranks the same. Which types and operators go
// together is said in dtype.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/dtype.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

struct CollectiveOptions : OperationOptions {
  std::string algorithm = "auto";  ///< By name (docs/collectives.md); `auto`: TASUKI_ALGORITHM, else chosen by cost.
  // Which algorithm has which of these: docs/collectives.md. If one is given, algorithms without it are left out.
  int trees = 0;  ///< Parts of the message, each with a tree of its own (`trees`, `torus`); 0: chosen by cost.
  int arity = 0;  ///< Children of an inner rank of a tree (`trees`, `torus`); 0: chosen by cost.
  /// Bytes that travel as one step of a pipeline (`trees`, `torus`, `collect`, `hierarchical`, the allreduce
  /// `doubling`); 0: chosen by cost.
  std::int64_t chunk = 0;
  /// Reductions combine in rank order, `(0 1) 2` or `0 (1 2)`, whatever the algorithm: those that do not are left out.
  /// Scans always do.
  bool ordered = false;
};

/// How a reduction combines: one of dtype.hpp's operators, or a function of the user's, in host memory only.
class Operator {
 public:
  /// `combine(right, left, count)`: left[i] = left[i] op right[i], for `count` elements of the reduction's type, which
  /// do not overlap. They are as aligned as the user's memory and layouts are: as the type wants only if `in`, `out`
  /// and the layouts' displacements are so on all ranks. Associative; results may differ by the brackets otherwise. It
  /// is called by the thread that drives the operation (engine `thread`: Tasuki's own), any number of times for parts
  /// of the vector. It must not use Tasuki. What it throws, `start`, `test` or `wait` of this rank throws; the context
  /// has then failed, and the waits of the other ranks end with its text.
  using Combine = std::function<void(const void* right, void* left, std::int64_t count)>;

  Operator(ReduceOp op) : op_(op) {}  // NOLINT(google-explicit-constructor)
  /// `name` is what plans and errors call it; ranks are compared by it. An operator that does not commute makes the
  /// reduction `ordered`. `record`: so many numbers of the reduction's type belong together, and are combined together;
  /// the reduction's counts, and `combine`'s, are then counts of records, and each contiguous run of a layout is a
  /// whole number of them. A struct of different types is a record of bytes: `u8`, `sizeof`. Throws `Error` for an
  /// empty name, without a function, or for a record of less than 1.
  Operator(std::string name, Combine combine, bool commutes = true, std::int64_t record = 1);

  ReduceOp op() const { return op_; }
  const std::string& name() const { return name_; }  ///< empty for those of dtype.hpp
  bool commutes() const { return commutes_; }
  std::int64_t record() const { return record_; }                             ///< numbers; 1 for those of dtype.hpp
  const std::shared_ptr<const Combine>& combine() const { return combine_; }  ///< null for those of dtype.hpp

 private:
  ReduceOp op_ = ReduceOp::own;
  std::string name_;
  bool commutes_ = true;
  std::int64_t record_ = 1;
  std::shared_ptr<const Combine> combine_;
};

/// Stands for a buffer where a rank works in place. Of Allreduce, Scan, Exscan, ReduceScatter, Allgather and Alltoall:
/// for `in`, on all ranks; what `in` would hold is then in `out` when it is started (allgather: each rank's block where
/// it ends; reduce-scatter: all of it, and the result is at the beginning). With a root, on the root: for `in` of
/// Reduce and Gather, for `out` of Scatter, whose root keeps its block in `in`.
extern void* const in_place;

/// `out` = all ranks' `in`, combined element by element by `op`, on every rank. `count` elements each.
class Allreduce : public Operation {
 public:
  Allreduce(const Context& context, const void* in, void* out, std::int64_t count, DType type,
            const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  Allreduce(const Context& context, const void* in, const Layout& in_layout, void* out, const Layout& out_layout,
            DType type, const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
};

/// The same on rank `root` only; `out` of other ranks is not looked at.
class Reduce : public Operation {
 public:
  Reduce(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
         const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  Reduce(const Context& context, int root, const void* in, const Layout& in_layout, void* out, const Layout& out_layout,
         DType type, const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
};

/// `in` holds a block for every rank; rank r gets block r of all ranks, combined. `count` elements a block, or
/// `counts[r]`, the same on all ranks.
class ReduceScatter : public Operation {
 public:
  ReduceScatter(const Context& context, const void* in, void* out, std::int64_t count, DType type,
                const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  ReduceScatter(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& counts, DType type,
                const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  /// A layout for every rank's block, the same sizes on all ranks.
  ReduceScatter(const Context& context, const void* in, const std::vector<Layout>& in_layouts, void* out,
                const Layout& out_layout, DType type, const Operator& op = ReduceOp::sum,
                const CollectiveOptions& options = {});
};

/// `out` = the ranks' blocks, on every rank. `count` elements each, or `counts[r]` of rank r, the same on all ranks.
class Allgather : public Operation {
 public:
  Allgather(const Context& context, const void* in, void* out, std::int64_t count, DType type,
            const CollectiveOptions& options = {});
  Allgather(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& counts, DType type,
            const CollectiveOptions& options = {});
  Allgather(const Context& context, const void* in, const Layout& in_layout, void* out,
            const std::vector<Layout>& out_layouts, const CollectiveOptions& options = {});
};

/// The same on rank `root` only; `out` of other ranks is not looked at.
class Gather : public Operation {
 public:
  Gather(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
         const CollectiveOptions& options = {});
  Gather(const Context& context, int root, const void* in, void* out, const std::vector<std::int64_t>& counts,
         DType type, const CollectiveOptions& options = {});
  Gather(const Context& context, int root, const void* in, const Layout& in_layout, void* out,
         const std::vector<Layout>& out_layouts, const CollectiveOptions& options = {});
};

/// `in` of rank `root` holds a block for every rank; rank r gets block r. `in` of other ranks is not looked at.
class Scatter : public Operation {
 public:
  Scatter(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
          const CollectiveOptions& options = {});
  Scatter(const Context& context, int root, const void* in, void* out, const std::vector<std::int64_t>& counts,
          DType type, const CollectiveOptions& options = {});
  Scatter(const Context& context, int root, const void* in, const std::vector<Layout>& in_layouts, void* out,
          const Layout& out_layout, const CollectiveOptions& options = {});
};

/// `in` holds a block for every rank, `out` gets one of every rank: of rank r, its block for this one. `count` elements
/// each; or `send_counts[r]` go to rank r and `receive_counts[r]` come from it, which must fit what rank r says.
class Alltoall : public Operation {
 public:
  Alltoall(const Context& context, const void* in, void* out, std::int64_t count, DType type,
           const CollectiveOptions& options = {});
  Alltoall(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& send_counts,
           const std::vector<std::int64_t>& receive_counts, DType type, const CollectiveOptions& options = {});
  /// As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own.
  Alltoall(const Context& context, const void* in, const std::vector<Layout>& in_layouts, void* out,
           const std::vector<Layout>& out_layouts, const CollectiveOptions& options = {});
};

/// `out` of rank r = `in` of ranks 0 to r, combined in rank order. `count` elements each.
class Scan : public Operation {
 public:
  Scan(const Context& context, const void* in, void* out, std::int64_t count, DType type,
       const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  Scan(const Context& context, const void* in, const Layout& in_layout, void* out, const Layout& out_layout, DType type,
       const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
};

/// `out` of rank r = `in` of ranks 0 to r - 1, combined in rank order; that of rank 0 stays as it is.
class Exscan : public Operation {
 public:
  Exscan(const Context& context, const void* in, void* out, std::int64_t count, DType type,
         const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
  Exscan(const Context& context, const void* in, const Layout& in_layout, void* out, const Layout& out_layout,
         DType type, const Operator& op = ReduceOp::sum, const CollectiveOptions& options = {});
};

/// An epoch ends on a rank when all ranks have started it. With `where` = device, the same on all ranks, it is a
/// barrier of streams: what a rank has put into its stream after it runs when all ranks' streams have come as far.
class Barrier : public Operation {
 public:
  explicit Barrier(const Context& context, const CollectiveOptions& options = {});
  Barrier(const Context& context, Memory where, const CollectiveOptions& options = {});
};

}  // namespace tasuki
