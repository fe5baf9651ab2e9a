// Jobs of a lowered plan that only moves data (tasuki/kernel/jobs.cuh): made and dealt out to a group's warps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/gpu/program.hpp"
#include "tasuki/kernel/plan.cuh"

namespace tasuki {

/// The parts of `lower` that a handle has, in the order of `Part`.
constexpr int kPartsLowered[kPartsOfHandle] = {kPartStart, kPartWait, kBoth};

/// How large jobs are.
struct JobSize {
  std::int64_t rows = kTileRows;  ///< at most
  std::int64_t copied = 0;        ///< units of a row that is copied within the GPU; 0: as the plan has it
};

/// In the order in which a warp does them. What the peers wait for leaves first, and what comes from them is waited for
/// last.
enum JobKind : int { kSent, kLocal, kTaken, kJobKinds };

/// A strided copy of a step: a job but for its rows.
struct PlanMove {
  Job job;
  std::int64_t rows = 0;
  std::int64_t in_ring = 0;  ///< of a stamped side: where in its ring the first line lies
};
using PlanMoves = std::array<std::vector<PlanMove>, kJobKinds>;

/// A row of a move.
struct PlanRow {
  const PlanMove* move;
  std::int64_t row;
};
std::vector<PlanRow> rows_of(const std::vector<PlanMove>& moves);

/// Jobs of rows that so many warps do, of at most `most` rows that follow each other. Few rows are jobs of one row
/// each, so that all are in flight at once. More rows than needed for the same number of rounds would leave warps
/// without a job.
std::vector<Job> cut(const std::vector<PlanRow>& rows, std::int64_t warps, std::int64_t most);

/// The moves of all parts. None under the conditions of `jobs_of`.
std::optional<std::array<PlanMoves, kPartsOfHandle>> moves_of(const GpuProgram& program, const JobSize& size);

/// The jobs of a part.
struct DealtJobs {
  std::vector<Job> jobs;  ///< by block, then by warp, then in the order in which they are done
  int turns = 1;          ///< of a warp; one that has fewer ends with a job of no rows
  int blocks = 0;         ///< that have some: the first ones
};

/// What each warp does, of some blocks one after the other.
DealtJobs dealt_to(std::vector<std::vector<Job>> warps, int blocks);

/// The jobs of all parts for a group of blocks of so many warps. None if the plan does more than move data: if a step
/// waits, signals or reduces, if steps wait for each other, or if a strided copy has too many dimensions.
std::optional<std::array<DealtJobs, kPartsOfHandle>> jobs_of(const GpuProgram& program, int blocks, int warps,
                                                             const JobSize& size = {});

}  // namespace tasuki
