// Jobs of a lowered plan that only moves data (tasuki/kernel/impl/jobs.cuh): made and dealt out to a group's warps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/gpu/program.hpp"
#include "engines/gpu/row_places.hpp"
#include "tasuki/kernel/plan.cuh"

namespace tasuki {

/// The parts of `lower` that a handle has, in the order of `Part`.
constexpr int kPartsLowered[kPartsOfHandle] = {kPartStart, kPartWait, kBoth};

/// In the order in which a warp does them. What the peers wait for leaves first, and what comes from them is waited for
/// last.
enum JobKind : int { kSent, kLocal, kUnpacked, kJobKinds };

/// A strided copy of a step: a job but for its rows.
struct PlanMove {
  Job job;
  std::int64_t rows = 0;
  std::int64_t in_ring = 0;  ///< of an LL side: where in its ring the first line lies
  UnitLists lists;           ///< of its outermost dimension, where it has any: a job by itself cannot
};
using PlanMoves = std::array<std::vector<PlanMove>, kJobKinds>;

/// A row of a move, or a part of one that is copied within the rank.
struct PlanRow {
  const PlanMove* move;
  std::int64_t row;
  std::int64_t begin;  ///< its units among those of the move
  std::int64_t end;
};
std::vector<PlanRow> rows_of(const std::vector<PlanMove>& moves);

/// Rows of a kind that a warp moves at a time; none if it has nothing to move.
using Bundle = std::vector<PlanRow>;
/// Whether a row may be added to a bundle.
using Joins = bool (*)(const Bundle& bundle, const PlanRow& row);

/// Bundles for so many warps, of at most `most` rows. Few rows are bundles of one row each, so that all are in flight
/// at once. More rows than needed for the same number of rounds would leave warps without a bundle.
std::vector<Bundle> bundles_of(const std::vector<PlanRow>& rows, std::int64_t warps, std::int64_t most, Joins joins);

/// The moves of all parts. `copied`: units of a row that is copied within the GPU; 0: as the plan has it. None under
/// the conditions of `jobs_of`.
std::optional<std::array<PlanMoves, kPartsOfHandle>> moves_of(const GpuProgram& program, std::int64_t copied);

/// What the warps do of a part.
struct DealtBundles {
  std::vector<Bundle> bundles;  ///< by block, then by warp, then in the order in which they are moved
  int turns = 1;                ///< of a warp; one that has fewer ends with an empty bundle
  int blocks = 0;               ///< that have some: the first ones
};

/// What each warp does, of some blocks one after the other.
DealtBundles dealt_to(std::vector<std::vector<Bundle>> warps, int blocks);

/// A part's moves dealt out to a group of blocks of so many warps. None if there are too many.
std::optional<DealtBundles> deal_out(const PlanMoves& moves, int blocks, int warps, std::int64_t most_rows,
                                     Joins joins);

/// The jobs of a part, as DealtBundles has bundles. An empty one is a job of no rows.
struct DealtJobs {
  std::vector<Job> jobs;
  int turns = 1;
  int blocks = 0;
};

/// The jobs of all parts for a group of blocks of so many warps. None if the plan does more than move data: if a step
/// waits, signals or reduces, if steps wait for each other, or if a strided copy has too many dimensions.
std::optional<std::array<DealtJobs, kPartsOfHandle>> jobs_of(const GpuProgram& program, int blocks, int warps);

}  // namespace tasuki
