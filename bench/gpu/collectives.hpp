// What a case of the groups gpu-collectives and gpu-overlap asks of a peer: one collective of 32-bit floats on GPU
// memory, in stream order.
#pragma once

#include <cstdint>
#include <vector>

#include "case.hpp"
#include "tasuki/planning.hpp"

struct ncclComm;

namespace bench {

/// `count` floats are the whole buffer: of a broadcast, reduce and allreduce the vector, of the others all blocks of a
/// rank, of which each has count / ranks. The root is rank 0, the operator a sum.
struct GpuCollectiveCase {
  tasuki::Context context;
  tasuki::CollectiveKind kind{};
  std::int64_t count = 0;
  /// Null: the one in which all peers work. Else what is put there is run beside a computation, in a graph of the
  /// caller's if it is to be in one.
  tasuki::Stream branch = nullptr;
  bool after_barrier = false;  ///< a barrier of all GPUs' streams comes before each

  tasuki::Stream stream() const;
  std::int64_t block() const { return count / context.size(); }
  std::int64_t gives() const;  ///< floats that a rank gives
  std::int64_t gets() const;   ///< floats of a rank's result; of a reduce, the root's
};

/// A runner, and the memory from which and to which it works; a broadcast works in `in`.
struct GpuCollectiveRun {
  RunnerPtr runner;
  float* in = nullptr;
  float* out = nullptr;
};

Peer gpu_collective_peer(const std::string& name, std::function<GpuCollectiveRun(const GpuCollectiveCase&)> make);
/// As the functions of these names in problem.hpp; `replayed` leaves the graph to the caller where there is a branch.
GpuCollectiveRun replayed(const GpuCollectiveCase& problem, GpuCollectiveRun run);
GpuCollectiveRun unless_left_out(const GpuCollectiveCase& problem, const std::string& peer,
                                 const std::function<GpuCollectiveRun()>& make);

std::vector<Case> gpu_collective_cases(int ranks);

/// The communicator of all ranks that the peers of NCCL share. Collective the first time; throws on all ranks or on
/// none.
ncclComm* nccl_communicator(const tasuki::Context& context);

}  // namespace bench
