// What the tests of ranks that are killed during collectives share: one collective of every kind, by its name.
#pragma once

#include <array>
#include <string_view>

#include "tasuki/tasuki.hpp"

namespace each_collective {

inline constexpr std::array kKinds{
    "barrier", "broadcast", "reduce", "allreduce", "reduce_scatter", "gather",
    "scatter", "allgather", "scan",   "exscan",    "alltoall",       "neighbours",
};
inline constexpr std::int64_t kCount = 4099;  // of a block

/// `in` and `out` have room for kCount numbers of each rank; they lie in memory of the kind `where`. `neighbours`: an
/// exchange along a ring of all ranks.
inline tasuki::Operation make(const tasuki::Context& part, std::string_view kind, int root, double* in, double* out,
                              const tasuki::CollectiveOptions& options, tasuki::Memory where = tasuki::Memory::host) {
  using namespace tasuki;
  constexpr DType kType = DType::f64;
  constexpr ReduceOp kSum = ReduceOp::sum;
  const int right = (part.rank() + 1) % part.size();
  const int left = (part.rank() + part.size() - 1) % part.size();
  if (kind == "barrier") return Barrier(part, where, options);
  if (kind == "broadcast") return Broadcast(part, root, in, kCount * 8, options);
  if (kind == "reduce") return Reduce(part, root, in, out, kCount, kType, kSum, options);
  if (kind == "allreduce") return Allreduce(part, in, out, kCount, kType, kSum, options);
  if (kind == "reduce_scatter") return ReduceScatter(part, in, out, kCount, kType, kSum, options);
  if (kind == "gather") return Gather(part, root, in, out, kCount, kType, options);
  if (kind == "scatter") return Scatter(part, root, in, out, kCount, kType, options);
  if (kind == "allgather") return Allgather(part, in, out, kCount, kType, options);
  if (kind == "scan") return Scan(part, in, out, kCount, kType, kSum, options);
  if (kind == "exscan") return Exscan(part, in, out, kCount, kType, kSum, options);
  if (kind == "alltoall") return Alltoall(part, in, out, kCount, kType, options);
  return NeighbourAlltoall(part, Neighbours({right, left}, {left, right}), in, out, kCount, kType, options);
}

}  // namespace each_collective
