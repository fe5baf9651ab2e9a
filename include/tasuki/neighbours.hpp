// Neighbour collectives: every rank exchanges blocks with the ranks that it names, or with those beside it in a grid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasuki/collectives.hpp"
#include "tasuki/grid.hpp"

namespace tasuki {

/// Whom a rank sends to and whom it hears from, in the order of its blocks. A rank may be named several times, and may
/// name itself.
struct Neighbours {
  /// Any graph. Ranks need not name the same number of others, but must fit: for every time that rank a names b in
  /// `to`, b names a in `from`; the first belongs to the first, and so on. The collectives check it.
  Neighbours(std::vector<int> to, std::vector<int> from);
  /// The two beside this rank in each dimension of the grid of ranks, the lower one first: 2 * ndims blocks. Where
  /// there is none, at the edges of a grid that is not periodic there, the block is left alone. What goes to the lower
  /// neighbour arrives in its block for the upper one.
  explicit Neighbours(const Grid& grid);

  std::vector<int> to, from;  ///< ranks; -1: nobody
  bool of_grid = false;
};

/// Neighbour collectives are made collectively; what is wrong on one rank, a graph or blocks that do not fit, throws
/// `Error` on every rank. They are not in place. For the rest collectives.hpp holds, memory of GPUs and layouts too.
///
/// `in`, to each neighbour in `to`; `out` gets a block of each in `from`, one after the other. `count` elements each,
/// or `count` of this rank's own and `receive_counts[i]` of `from[i]`, which must be what that rank sends.
class NeighbourAllgather : public Operation {
 public:
  NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                     std::int64_t count, DType type, const OperationOptions& options = {});
  NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                     std::int64_t count, const std::vector<std::int64_t>& receive_counts, DType type,
                     const OperationOptions& options = {});
  /// A layout for the block of each neighbour in `from`.
  NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, const Layout& in_layout,
                     void* out, const std::vector<Layout>& out_layouts, const OperationOptions& options = {});
};

/// `in` holds a block for each neighbour in `to`, `out` gets one of each in `from`; both one after the other. `count`
/// elements each, or `send_counts[i]` to `to[i]` and `receive_counts[i]` from `from[i]`, which must fit.
class NeighbourAlltoall : public Operation {
 public:
  NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out, std::int64_t count,
                    DType type, const OperationOptions& options = {});
  NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                    const std::vector<std::int64_t>& send_counts, const std::vector<std::int64_t>& receive_counts,
                    DType type, const OperationOptions& options = {});
  /// As MPI_Neighbor_alltoallw: a layout for the block of each neighbour in `to`, and in `from`.
  NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in,
                    const std::vector<Layout>& in_layouts, void* out, const std::vector<Layout>& out_layouts,
                    const OperationOptions& options = {});
};

}  // namespace tasuki
