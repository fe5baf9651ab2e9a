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

/// The jobs of a part.
struct DealtJobs {
  std::vector<Job> jobs;  ///< by block, then by warp, then in the order in which they are done
  int turns = 1;          ///< of a warp; one that has fewer ends with a job of no rows
  int blocks = 0;         ///< that have some: the first ones
};

/// The jobs of all parts for a group of blocks of so many warps. None if the plan does more than move data: if a step
/// waits, signals or reduces, if steps wait for each other, or if a strided copy has too many dimensions.
std::optional<std::array<DealtJobs, kPartsOfHandle>> jobs_of(const GpuProgram& program, int blocks, int warps,
                                                             const JobSize& size = {});

}  // namespace tasuki
